import { afterEach, expect, test } from 'vitest'
import { type CallRig, startCallRig } from '../../support/call-rig.ts'
import { sdp } from '../../support/sip-peer.ts'
import { acknowledge, dial, hangUp, carrierOf } from './steps.ts'

let rig: CallRig

afterEach(() => rig.stop())

/** The node has answered, and the journal waits for `write`. */
async function answeredByNode() {
  rig = await startCallRig()
  let write: (isStored: boolean) => void = () => undefined
  rig.answers.journalled = () =>
    new Promise((resolve) => {
      write = resolve
    })
  const { caller, node, leg, invite } = await dial(rig)
  node.reply(invite, 200, { tag: 'b', body: sdp('answer') })
  await node.next('ACK')
  await rig.until(() => rig.opened.length === 1)
  return { caller, node, leg, write: (isStored = true) => write(isStored) }
}

const hasHeard = (inbox: readonly { startLine: string }[]): boolean =>
  inbox.some(({ startLine }) => startLine.startsWith('SIP/2.0 200'))

test('a caller gets the 200 only when no crash can lose the call any more', async () => {
  const { caller, leg, write } = await answeredByNode()
  // A round trip: what was sent before its answer has arrived by now.
  caller.request('OPTIONS', caller.leg(rig.uri('options')))
  await caller.next('200 OPTIONS')
  expect(hasHeard(caller.inbox)).toBe(false)
  expect(rig.opened).toMatchObject([{ callUuid: 'uuid-1', attempts: [{ status: 200 }] }])
  write()
  caller.learn(leg, await caller.next('200 INVITE'))
})

test('a call that cannot be journalled is refused: the caller gets 503, the node that answered BYE', async () => {
  const { caller, node, leg, write } = await answeredByNode()
  write(false)
  const refusal = await caller.next('503 INVITE')
  expect(refusal.get('Retry-After')).toBe('5')
  expect(hasHeard(caller.inbox)).toBe(false)
  caller.request('ACK', leg)
  const bye = await node.next('BYE')
  expect(bye.get('Reason')).toContain('Q.850;cause=41')
  node.reply(bye, 200)
  expect(await rig.record()).toMatchObject({
    disposition: 'FAILED',
    sipCode: 503,
    denialCode: 'storage_unavailable',
    answeredAt: null,
    billsec: 0,
  })
})

test('an emergency is connected although it cannot be journalled', async () => {
  rig = await startCallRig()
  rig.answers.journalled = () => Promise.resolve(false)
  rig.answers.unserved = 'storage_unavailable'
  rig.answers.origin = { kind: 'node', nodeId: 1, setId: 1 }
  const [caller, ambulance] = [await rig.caller(), await carrierOf(rig, { number: '112' }, true)]
  caller.request('INVITE', caller.leg(rig.uri('112')), { body: sdp('help') })
  ambulance.reply(await ambulance.next('INVITE'), 200, { tag: 'b', body: sdp('answer') })
  await caller.next('200 INVITE')
})

test('while nothing can be stored, new calls get 503 with Retry-After, and the live one goes on', async () => {
  const { caller, node, leg, write } = await answeredByNode()
  write()
  await acknowledge(caller, leg)
  rig.answers.unserved = 'storage_unavailable'
  const refused = caller.leg(rig.uri('1555'))
  caller.request('INVITE', refused, { body: sdp('offer') })
  expect((await caller.next('503 INVITE')).get('Retry-After')).toBe('5')
  caller.request('ACK', refused)
  expect(await rig.record()).toMatchObject({ denialCode: 'storage_unavailable', sipCode: 503 })
  caller.request('OPTIONS', caller.leg(rig.uri('options')))
  await caller.next('503 OPTIONS')
  await hangUp(caller, leg, node)
  rig.answers.unserved = undefined
  caller.request('INVITE', caller.leg(rig.uri('1555')), { body: sdp('offer') })
  await node.next('INVITE')
})

test('a thousand refused calls wait for the disk; those beyond are counted and forgotten', async () => {
  rig = await startCallRig()
  rig.answers.unserved = 'storage_unavailable'
  rig.answers.stored = () => new Promise(() => undefined)
  const caller = await rig.caller()
  for (let index = 0; index < 1_010; index += 1)
    caller.request('INVITE', caller.leg(rig.uri('1555')), { body: sdp('offer') })
  await rig.until(() => rig.calls.unstored.withoutRecord === 10)
  expect(rig.calls.size).toBe(1_000)
})

test('a caller that gives up while its call is being journalled is not charged', async () => {
  const { caller, node, leg, write } = await answeredByNode()
  caller.request('CANCEL', leg)
  await caller.next('200 CANCEL')
  await caller.next('487 INVITE')
  // The server answers before call control has heard of it.
  await rig.seen(caller)
  write()
  node.reply(await node.next('BYE'), 200)
  expect(await rig.record()).toMatchObject({ disposition: 'CANCELED', billsec: 0 })
})
