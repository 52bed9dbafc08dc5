/** Messages that pass between the legs of an answered call, in both directions. */
import { afterEach, describe, expect, test } from 'vitest'
import { type CallRig, type Talk, startCallRig, talk } from '../../../support/call-rig.ts'
import { type Leg, type SipPeer, sdp } from '../../../support/sip-peer.ts'
import { dial, hangUp } from '../steps.ts'

let rig: CallRig

afterEach(() => rig.stop())

interface Direction {
  readonly from: SipPeer
  readonly fromLeg: Leg
  readonly to: SipPeer
}

const directions = {
  'caller to node': ({ caller, leg, node }: Talk): Direction => ({
    from: caller,
    fromLeg: leg,
    to: node,
  }),
  'node to caller': ({ caller, node, nodeLeg }: Talk): Direction => ({
    from: node,
    fromLeg: nodeLeg,
    to: caller,
  }),
}

const hold = sdp('hold').replace('a=sendrecv', 'a=sendonly')

describe.each(Object.entries(directions))('%s', (_name, direction) => {
  async function start(): Promise<Direction> {
    rig = await startCallRig({ passX: ['x-digit', 'x-result'] })
    return direction(await talk(rig))
  }

  test('hold and resume pass, and show in the state of the call', async () => {
    const { from, fromLeg, to } = await start()
    for (const [offer, state] of [
      [hold, 'HELD'],
      [sdp('back'), 'ACTIVE'],
    ] as const) {
      from.request('INVITE', fromLeg, { body: offer })
      const reinvite = await to.next('INVITE')
      expect(reinvite.body).toBe(offer)
      to.reply(reinvite, 200, { body: sdp('ok') })
      const answer = await from.next('200 INVITE')
      expect(answer.body).toBe(sdp('ok'))
      from.request('ACK', fromLeg)
      await to.next('ACK')
      expect(rig.calls.list()).toMatchObject([{ state }])
    }
  })

  test('a refused re-INVITE passes back, and the next one works', async () => {
    const { from, fromLeg, to } = await start()
    for (const status of [488, 491, 500]) {
      from.request('INVITE', fromLeg, { body: hold })
      to.reply(await to.next('INVITE'), status)
      await from.next(status)
      from.request('ACK', fromLeg)
    }
    expect(rig.calls.list()).toMatchObject([{ state: 'ACTIVE' }])
    from.request('INVITE', fromLeg, { body: sdp('more') })
    to.reply(await to.next('INVITE'), 200, { body: sdp('ok') })
    await from.next('200 INVITE')
  })

  test('a re-INVITE without offer: the offer comes in the 200, the answer in the ACK', async () => {
    const { from, fromLeg, to } = await start()
    from.request('INVITE', fromLeg)
    const reinvite = await to.next('INVITE')
    expect(reinvite.body).toBe('')
    to.reply(reinvite, 200, { body: sdp('their offer') })
    expect((await from.next('200 INVITE')).body).toBe(sdp('their offer'))
    from.request('ACK', fromLeg, { body: sdp('our answer') })
    expect((await to.next('ACK')).body).toBe(sdp('our answer'))
  })

  test.each(['INFO', 'UPDATE', 'MESSAGE', 'NOTIFY'])(
    '%s passes, and so does its answer',
    async (method) => {
      const { from, fromLeg, to } = await start()
      from.request(method, fromLeg, {
        headers: ['X-Digit: 5', 'X-Host: secret', 'User-Agent: secret', 'Event: test'],
        body: method === 'UPDATE' ? hold : sdp('any'),
      })
      const passed = await to.next(method)
      expect(passed.get('X-Digit')).toBe('5')
      expect(passed.text).not.toContain('secret')
      const headers = ['X-Result: fine', 'X-Host: secret', 'Server: secret']
      to.reply(passed, 200, { headers, body: sdp('reply') })
      const answer = await from.next(`200 ${method}`)
      expect(answer.get('X-Result')).toBe('fine')
      expect(answer.text).not.toContain('secret')
      expect(answer.body).toBe(sdp('reply'))
      expect(rig.calls.list()).toMatchObject([{ state: method === 'UPDATE' ? 'HELD' : 'ACTIVE' }])
    },
  )

  test('OPTIONS is answered here; an unknown method is refused, not answered 200', async () => {
    const { from, fromLeg, to } = await start()
    from.request('OPTIONS', fromLeg)
    expect((await from.next('200 OPTIONS')).get('Allow')).toContain('INVITE')
    for (const method of ['PUBLISH', 'SUBSCRIBE']) {
      from.request(method, fromLeg, { headers: ['Event: x'] })
      await from.next(`405 ${method}`)
    }
    expect(to.inbox.filter(({ method }) => method !== '')).toEqual([])
    expect(rig.calls.size).toBe(1)
  })

  test('a peer that does not know its dialog any more ends the call', async () => {
    const { from, fromLeg, to } = await start()
    from.request('INFO', fromLeg)
    to.reply(await to.next('INFO'), 481)
    await from.next('481 INFO')
    from.reply(await from.next('BYE'), 200)
    expect(await rig.record()).toMatchObject({ hangupBy: 'system', disposition: 'ANSWERED' })
  })
})

test('the held party may make an offer: the call stays on hold until it is resumed', async () => {
  rig = await startCallRig()
  const { caller, leg, node, nodeLeg } = await talk(rig)
  const listening = sdp('held').replace('a=sendrecv', 'a=recvonly')
  for (const [from, fromLeg, to, offer, answer, state] of [
    [caller, leg, node, hold, listening, 'HELD'],
    [node, nodeLeg, caller, listening, hold, 'HELD'],
    [caller, leg, node, sdp('back'), sdp('back'), 'ACTIVE'],
  ] as const) {
    from.request('INVITE', fromLeg, { body: offer })
    to.reply(await to.next('INVITE'), 200, { body: answer })
    await from.next('200 INVITE')
    from.request('ACK', fromLeg)
    await to.next('ACK')
    expect(rig.calls.list()).toMatchObject([{ state }])
  }
})

test('an INVITE without offer: the callee offers, the ACK of the caller answers', async () => {
  rig = await startCallRig()
  const { caller, node, leg, invite } = await dial(rig, {
    headers: ['Supported: 100rel, timer'],
    body: '',
  })
  expect(invite.body).toBe('')
  expect(invite.get('Supported')).toBe('replaces, timer')
  node.reply(invite, 200, { tag: 'b', body: sdp('offer of node') })
  const answer = await caller.next('200 INVITE')
  expect(answer.body).toBe(sdp('offer of node'))
  caller.learn(leg, answer)
  caller.request('ACK', leg, { body: sdp('answer of caller') })
  expect((await node.next('ACK')).body).toBe(sdp('answer of caller'))

  // The library compares bodies at a re-INVITE, and here one side never had any.
  const nodeLeg = node.calledLeg(invite, 'b')
  node.request('INVITE', nodeLeg, { body: hold })
  caller.reply(await caller.next('INVITE'), 200, { body: sdp('ok') })
  await node.next('200 INVITE')
  node.request('ACK', nodeLeg)
  caller.request('INVITE', leg, { body: hold })
  node.reply(await node.next('INVITE'), 200, { body: sdp('ok') })
  await caller.next('200 INVITE')
  caller.request('ACK', leg)

  await hangUp(caller, leg, node)
  await rig.record()
  await rig.idle()
})

// RFC 3261 §14.1: the owner of the Call-ID waits longer, so the second attempt of one side gets
// through.
test('both ends change the session at the same time: 491 for both, and their next attempts succeed', async () => {
  rig = await startCallRig()
  const { caller, node, leg, nodeLeg } = await talk(rig)
  caller.request('INVITE', leg, { body: sdp('caller again') })
  const relayed = await node.next('INVITE')
  node.request('INVITE', nodeLeg, { body: sdp('node again') })
  node.reply(relayed, 491)
  await Promise.all([node.next('491 INVITE'), caller.next('491 INVITE')])
  node.request('ACK', nodeLeg)
  caller.request('ACK', leg)

  for (const [from, ours, to, name] of [
    [node, nodeLeg, caller, 'node'],
    [caller, leg, node, 'caller'],
  ] as const) {
    from.request('INVITE', ours, { body: sdp(`${name} at last`) })
    const offer = await to.next((message) => message.body === sdp(`${name} at last`))
    to.reply(offer, 200, { body: sdp('agreed') })
    expect((await from.next('200 INVITE')).body).toBe(sdp('agreed'))
    from.request('ACK', ours)
    await to.next('ACK')
  }
})
