/** A caller that gives up, at every moment at which it can. */
import { afterEach, expect, test } from 'vitest'
import type { Verdict } from '../../../schema/contracts/charging.ts'
import { type CallRig, granted, startCallRig } from '../../support/call-rig.ts'
import { type Leg, type SipPeer, sdp } from '../../support/sip-peer.ts'

let rig: CallRig

afterEach(() => rig.stop())

const canceled = {
  disposition: 'CANCELED',
  hangupBy: 'caller',
  hangupCause: 'ORIGINATOR_CANCEL',
  sipCode: 487,
  billsec: 0,
}

async function invite(): Promise<{ caller: SipPeer; leg: Leg }> {
  const caller = await rig.caller()
  const leg = caller.leg(rig.uri('1555'))
  caller.request('INVITE', leg, { body: sdp('offer') })
  return { caller, leg }
}

async function hangUp(caller: SipPeer, leg: Leg): Promise<void> {
  caller.request('CANCEL', leg)
  await caller.next('200 CANCEL')
  caller.learn(leg, await caller.next('487 INVITE'))
  caller.request('ACK', leg)
}

test('while the wallet is asked: nothing is sent to any node', async () => {
  rig = await startCallRig({ withSipTimers: true })
  const node = await rig.node()
  let decide: (verdict: Verdict) => void = () => undefined
  rig.answers.authorize = () =>
    new Promise((resolve) => {
      decide = resolve
    })
  const { caller, leg } = await invite()
  await rig.until(() => rig.asked.length === 1)
  await hangUp(caller, leg)
  // The server answers before call control has heard of it.
  await rig.seen(caller)
  decide(granted(60))

  expect(await rig.record()).toMatchObject({ ...canceled, attempts: [] })
  await rig.idle()
  expect(node.inbox).toEqual([])
})

test('before the node has responded: CANCEL follows its first response', async () => {
  rig = await startCallRig()
  const node = await rig.node()
  const { caller, leg } = await invite()
  const received = await node.next('INVITE')
  await hangUp(caller, leg)
  expect(await rig.record()).toMatchObject({ ...canceled, attempts: [{ status: 0 }] })

  node.reply(received, 180, { tag: 'b' })
  const cancel = await node.next('CANCEL')
  node.reply(cancel, 200)
  node.reply(received, 487, { tag: 'b' })
  await node.next('ACK')
  await rig.idle()
  expect(caller.inbox.filter(({ status }) => status === 180)).toEqual([])
})

test('while it rings: the node gets CANCEL with a reason, and does not count as failed', async () => {
  rig = await startCallRig()
  const node = await rig.node()
  const { caller, leg } = await invite()
  const received = await node.next('INVITE')
  node.reply(received, 180, { tag: 'b' })
  await caller.next(180)
  await hangUp(caller, leg)
  const cancel = await node.next('CANCEL')
  expect(cancel.get('Reason')).toContain('Q.850;cause=16')
  node.reply(cancel, 200)
  node.reply(received, 487, { tag: 'b' })
  expect(await rig.record()).toMatchObject({ ...canceled, attempts: [{ status: 180 }] })
  expect(rig.outcomes).toEqual([])
  await rig.idle()
})

test('CANCEL has the Reason of the caller: a call completed elsewhere is not missed', async () => {
  rig = await startCallRig()
  const node = await rig.node()
  const { caller, leg } = await invite()
  const received = await node.next('INVITE')
  node.reply(received, 180, { tag: 'b' })
  await caller.next(180)
  const reason = 'SIP;cause=200;text="Call completed elsewhere"'
  caller.request('CANCEL', leg, { headers: [`Reason: ${reason}`] })
  const cancel = await node.next('CANCEL')
  expect(cancel.get('Reason')).toBe(reason)
  node.reply(cancel, 200)
  node.reply(received, 487, { tag: 'b' })
  expect(await rig.record()).toMatchObject(canceled)
})

test('crossing the answer: one end, and the answered leg is acknowledged and hung up', async () => {
  rig = await startCallRig({ withSipTimers: true })
  const node = await rig.node()
  const { caller, leg } = await invite()
  const received = await node.next('INVITE')
  node.reply(received, 180, { tag: 'b' })
  await caller.next(180)
  caller.request('CANCEL', leg)
  node.reply(received, 200, { tag: 'b', body: sdp('answer') })

  const bye = await node.next('BYE')
  node.reply(bye, 200)
  await caller.next('200 CANCEL')
  const final = await caller.next((message) => message.status >= 200)
  caller.learn(leg, final)
  caller.request('ACK', leg)
  // Which of the two came first decides what the caller sees, and the record says the same.
  const { disposition, hangupBy } = await rig.record()
  expect(disposition).toBe(final.status === 200 ? 'ANSWERED' : 'CANCELED')
  expect(hangupBy).toBe('caller')
  await rig.idle()
  expect(rig.records).toEqual([])
})

test('unheard until our answer is on its way: the server refuses it, and the node is hung up', async () => {
  rig = await startCallRig({ app: 'late', withSipTimers: true })
  const node = await rig.node()
  const { caller, leg } = await invite()
  const received = await node.next('INVITE')
  node.reply(received, 180, { tag: 'b' })
  await caller.next(180)
  node.reply(received, 200, { tag: 'b', body: sdp('answer') })
  await hangUp(caller, leg)
  node.reply(await node.next('BYE'), 200)
  expect(await rig.record()).toMatchObject(canceled)
  await rig.idle()
})
