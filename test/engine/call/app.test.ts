import { expect, test } from 'vitest'
import { startedAt, talk } from '../../support/call-rig.ts'
import { sdp } from '../../support/sip-peer.ts'
import { dial, hangUp, acknowledge, rig, rigForEachTest } from './steps.ts'

rigForEachTest()

const allow =
  'INVITE, ACK, CANCEL, BYE, OPTIONS, REGISTER, PRACK, UPDATE, INFO, MESSAGE, NOTIFY, REFER, PUBLISH'

test('OPTIONS tells what we do; while draining it tells to go elsewhere', async () => {
  const peer = await rig.caller()
  peer.request('OPTIONS', peer.leg(rig.uri('ping')))
  const answer = await peer.next('200 OPTIONS')
  expect(answer.get('Allow')).toBe(allow)
  expect(answer.get('Accept')).toBe('application/sdp')
  expect(answer.get('Supported')).toBe('timer, replaces')

  void rig.calls.drain(startedAt)
  peer.request('OPTIONS', peer.leg(rig.uri('ping')))
  expect((await peer.next('503 OPTIONS')).get('Retry-After')).toBe('5')
  expect(rig.records).toEqual([])
})

test.each([
  'SUBSCRIBE',
  'FROBNICATE',
  'INVITE2',
  'invite',
  'Subscribe',
  'PING',
  'SERVICE',
  'X-A.b!~',
])('%s outside a dialog is refused with 405, and with the Allow of OPTIONS', async (method) => {
  const peer = await rig.caller()
  peer.request(method, peer.leg(rig.uri('1')), { headers: ['Event: x'] })
  expect((await peer.next(`405 ${method}`)).all('Allow')).toEqual([allow])
})

test.each(['SUBSCRIBE', 'FROBNICATE', 'PUBLISH', 'REGISTER', 'invite'])(
  '%s in a call is refused with the same Allow, as OPTIONS there has it',
  async (method) => {
    const { caller, node, leg } = await talk(rig)
    caller.request(method, leg, { headers: ['Event: x'] })
    expect((await caller.next(`405 ${method}`)).all('Allow')).toEqual([allow])
    caller.request('OPTIONS', leg)
    expect((await caller.next('200 OPTIONS')).all('Allow')).toEqual([allow])
    await hangUp(caller, leg, node)
  },
)

test.each(['NOTIFY', 'INFO'])(
  '%s outside a dialog is one of a call that we do not have',
  async (method) => {
    const peer = await rig.caller()
    peer.request(method, peer.leg(rig.uri('1')), { headers: ['Event: x'] })
    await peer.next(`481 ${method}`)
  },
)

test('REFER outside a call is refused: there is no party to transfer', async () => {
  const peer = await rig.caller()
  peer.request('REFER', peer.leg(rig.uri('1')), { headers: ['Refer-To: <sip:1@h>'] })
  await peer.next('403 REFER')
})

// RFC 5057 §5.3: a 481 would end the call. Phones dial through an IVR's early media with INFO.
test.each(['INFO', 'MESSAGE', 'UPDATE', 'REFER'])(
  '%s before the answer is told to come later, and its call goes on',
  async (method) => {
    const { caller, node, leg, invite } = await dial(rig)
    node.reply(invite, 183, { tag: 'b', body: sdp('answer') })
    caller.learn(leg, await caller.next('183 INVITE'))
    caller.request(method, leg, { headers: ['Refer-To: <sip:1@h>'] })
    expect((await caller.next(`500 ${method}`)).get('Retry-After')).toMatch(/^\d$/)
    caller.request('OPTIONS', leg)
    expect((await caller.next('200 OPTIONS')).get('Allow')).toContain('INVITE')
    node.reply(invite, 200, { tag: 'b', body: sdp('answer') })
    await caller.next('200 INVITE')
    caller.request('ACK', { ...leg, cseq: 1 })
    await node.next('ACK')
    await hangUp(caller, leg, node)
    expect(await rig.record()).toMatchObject({ disposition: 'ANSWERED' })
  },
)

test('requests in a dialog that is over are unknown here: 481', async () => {
  const { caller, leg, node } = await talk(rig)
  await hangUp(caller, leg, node)
  await rig.record()
  for (const method of ['INFO', 'INVITE', 'BYE']) {
    caller.request(method, leg)
    await caller.next(`481 ${method}`)
  }
  expect(rig.records).toEqual([])
})

const types = (): string[] => rig.events.map(({ type }) => type)

test('a call has events when it is admitted, rings, is answered and ends, with its payer', async () => {
  const { caller, node, leg, invite } = await dial(rig)
  expect(types()).toEqual(['call.started'])
  node.reply(invite, 180, { tag: 'b' })
  node.reply(invite, 180, { tag: 'b' })
  await caller.next('180 INVITE')
  await caller.next('180 INVITE')
  expect(types()).toEqual(['call.started', 'call.ringing'])
  node.reply(invite, 200, { tag: 'b', body: sdp('answer') })
  await acknowledge(caller, leg, node)
  await hangUp(caller, leg, node)
  await rig.record()
  await rig.idle()
  expect(types()).toEqual(['call.started', 'call.ringing', 'call.answered', 'call.ended'])
  expect(rig.events.every(({ tenantId }) => tenantId === 3)).toBe(true)
  expect(rig.calls.recent('uuid-1')?.disposition).toBe('ANSWERED')
})

test('hold and resume are no further answers', async () => {
  const { caller, node, leg } = await talk(rig)
  for (const direction of ['sendonly', 'sendrecv']) {
    caller.request('INVITE', leg, { body: sdp('again').replace('sendrecv', direction) })
    const invite = await node.next('INVITE')
    node.reply(invite, 200, { body: sdp('answer') })
    await caller.next('200 INVITE')
    caller.request('ACK', leg)
    await node.next('ACK')
    const state = direction === 'sendonly' ? 'HELD' : 'ACTIVE'
    await rig.until(() => rig.calls.list()[0]?.state === state)
  }
  await hangUp(caller, leg, node)
  await rig.record()
  await rig.idle()
  expect(types()).toEqual(['call.started', 'call.answered', 'call.ended'])
})
