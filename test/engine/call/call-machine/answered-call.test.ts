/** How an answered call ends: whatever happens on its two legs, it ends once, and on both. */
import { afterEach, expect, test } from 'vitest'
import { type CallRig, granted, startCallRig, talk } from '../../../support/call-rig.ts'
import { sdp } from '../../../support/sip-peer.ts'
import { acknowledge, areHungUp, dial, hangUp, nextNode } from '../steps.ts'

let rig: CallRig

afterEach(() => rig.stop())

test('the callee hangs up: the caller gets BYE with its reason', async () => {
  rig = await startCallRig({ withSipTimers: true })
  const { caller, node, nodeLeg } = await talk(rig)
  await rig.advance(1)
  node.request('BYE', nodeLeg, { headers: ['Reason: Q.850;cause=16;text="bye"', 'Server: x'] })
  await node.next('200 BYE')
  const bye = await caller.next('BYE')
  expect(bye.get('Reason')).toBe('Q.850;cause=16;text="bye"')
  expect(bye.get('Server')).toBe('')
  caller.reply(bye, 200)
  expect(await rig.record()).toMatchObject({
    disposition: 'ANSWERED',
    hangupBy: 'callee',
    hangupCause: 'NORMAL_CLEARING',
    billsec: 1,
  })
  await rig.idle()
})

test('a customer that may not call any more: both legs get BYE at the next heartbeat', async () => {
  rig = await startCallRig({ withSipTimers: true })
  const { caller, node } = await talk(rig)
  rig.answers.revoked = [{ callUuid: 'uuid-1', code: 'customer_inactive' }]
  await rig.advance(5_100)
  for (const peer of [caller, node]) {
    const bye = await peer.next('BYE')
    expect(bye.get('Reason')).toBe('Q.850;cause=52;text="OUTGOING CALL BARRED"')
    peer.reply(bye, 200)
  }
  expect(await rig.record()).toMatchObject({
    hangupBy: 'system',
    hangupCause: 'OUTGOING_CALL_BARRED',
    denialCode: 'customer_inactive',
  })
  await rig.idle()
})

test.each(['in process', 'in bursts'] as const)(
  'crossing BYEs (%s) are both answered and end the call once',
  async (app) => {
    rig = await startCallRig({ app, withSipTimers: true })
    const { caller, node, leg, nodeLeg } = await talk(rig)
    caller.request('BYE', leg)
    node.request('BYE', nodeLeg)
    await Promise.all([caller.next('200 BYE'), node.next('200 BYE')])
    await rig.record()
    for (const peer of [caller, node])
      for (const bye of peer.inbox.filter(({ method }) => method === 'BYE')) peer.reply(bye, 481)
    await rig.idle()
    expect(rig.records).toEqual([])
  },
)

// drachtio-srf's promises lose a `destroy` that comes with the message that they report.
test('a BYE in the same read as the answer it follows is not lost', async () => {
  rig = await startCallRig({ app: 'in bursts', withSipTimers: true })
  const { caller, node, leg, invite } = await dial(rig)
  node.reply(invite, 200, { tag: 'b', body: sdp('answer') })
  await acknowledge(caller, leg)
  await hangUp(caller, leg, node)
  expect(await rig.record()).toMatchObject({ hangupBy: 'caller', disposition: 'ANSWERED' })
  await rig.idle()
})

test('a callee that hangs up before the ACK: the caller gets its BYE only after the ACK', async () => {
  rig = await startCallRig({ withSipTimers: true })
  const { caller, node, leg, invite } = await dial(rig)
  node.reply(invite, 200, { tag: 'b', body: sdp('answer') })
  const answer = await caller.next('200 INVITE')
  await node.next('ACK')
  node.request('BYE', node.calledLeg(invite, 'b'))
  await node.next('200 BYE')
  expect(await rig.record()).toMatchObject({ hangupBy: 'callee' })
  await rig.seen(caller)
  expect(caller.inbox.filter(({ method }) => method === 'BYE')).toEqual([])

  caller.learn(leg, answer)
  caller.request('ACK', leg)
  caller.reply(await caller.next('BYE'), 200)
  await rig.idle()
})

test('a BYE lost with the connection leaves no dialog behind', async () => {
  rig = await startCallRig()
  const { caller, node, leg } = await talk(rig)
  caller.request('BYE', leg)
  await node.next('BYE')
  await rig.record()
  expect(rig.client.stats()['dialogs']).toBe(1)
  await rig.server.stop()
  await rig.idle()
})

test('a caller that never acknowledges: both legs end, and nothing is left', async () => {
  rig = await startCallRig({ withSipTimers: true })
  const { caller, node, invite } = await dial(rig)
  node.reply(invite, 200, { tag: 'b', body: sdp('answer') })
  // 64·T1 (RFC 3261 §13.3.1.4).
  await rig.advance(32_000)
  node.reply(await node.next('BYE'), 200)
  caller.reply(await caller.next('BYE'), 200)
  expect(await rig.record()).toMatchObject({
    disposition: 'ANSWERED',
    hangupBy: 'system',
    hangupCause: 'RECOVERY_ON_TIMER_EXPIRE',
  })
  await rig.idle()
})

test('an empty wallet ends both legs with the Reason of SPECIFICATION.md', async () => {
  rig = await startCallRig({ withSipTimers: true })
  rig.answers.authorize = () => Promise.resolve(granted(20))
  rig.answers.extend = () => Promise.resolve({ kind: 'denied', code: 'insufficient_funds' })
  const { caller, node } = await talk(rig)
  await rig.advance(20_100)
  const byes = [await caller.next('BYE'), await node.next('BYE')]
  for (const bye of byes) expect(bye.get('Reason')).toBe('Q.850;cause=21;text="Insufficient Funds"')
  for (const [index, peer] of [caller, node].entries()) {
    const bye = byes[index]
    if (bye) peer.reply(bye, 200)
  }
  expect(await rig.record()).toMatchObject({
    disposition: 'ANSWERED',
    denialCode: 'insufficient_funds',
    hangupBy: 'system',
    hangupCause: 'CALL_REJECTED',
    billsec: 20,
  })
  await rig.idle()
})

test('a drain waits for live calls, then hangs them up', async () => {
  rig = await startCallRig({ withSipTimers: true })
  const { caller, node } = await talk(rig)
  let isDrained = false
  const drained = rig.calls.drain(rig.time.now() + 30_000).then(() => (isDrained = true))
  await rig.advance(29_000)
  expect(isDrained).toBe(false)
  await rig.advance(1_100)
  await areHungUp(caller, node)
  await drained
  expect(await rig.record()).toMatchObject({ denialCode: 'shutdown', hangupBy: 'system' })
  await rig.idle()
})

test('when the SIP server goes away every call ends, ringing or answered, and nothing is kept', async () => {
  rig = await startCallRig()
  const { caller } = await talk(rig)
  const node = await nextNode(rig)
  caller.request('INVITE', caller.leg(rig.uri('1666')), { body: sdp('offer') })
  await node.next('INVITE')
  await rig.server.stop()
  const ended = [await rig.record(), await rig.record()]
  expect(ended.map(({ disposition }) => disposition).toSorted()).toEqual(['ANSWERED', 'FAILED'])
  expect(ended.map(({ denialCode }) => denialCode)).toEqual(['connection_lost', 'connection_lost'])
  await rig.idle()
})

test('the OCS gets the live calls at least every 10 seconds, and not of ended ones', async () => {
  rig = await startCallRig()
  const { caller, leg } = await talk(rig)
  await rig.advance(10_000)
  expect(rig.alive.length).toBeGreaterThan(0)
  expect(rig.alive[0]).toEqual(['uuid-1'])
  caller.request('BYE', leg)
  await rig.record()
  const before = rig.alive.length
  await rig.advance(20_000)
  expect(rig.alive).toHaveLength(before)
})
