import { afterEach, expect, test } from 'vitest'
import type { CallRig } from '../../support/call-rig.ts'
import { startCallRig } from '../../support/call-rig.ts'
import { sdp } from '../../support/sip-peer.ts'

let rig: CallRig

afterEach(() => rig.stop())

/** The node has answered, and the journal waits for `write`. */
async function answeredByNode() {
  rig = await startCallRig()
  let write: () => void = () => undefined
  rig.answers.journalled = () =>
    new Promise((resolve) => {
      write = resolve
    })
  const caller = await rig.caller()
  const node = await rig.node()
  const leg = caller.leg(rig.uri('1555'))
  caller.request('INVITE', leg, { body: sdp('offer') })
  node.reply(await node.next('INVITE'), 200, { tag: 'b', body: sdp('answer') })
  await node.next('ACK')
  await rig.until(() => rig.opened.length === 1)
  return { caller, node, leg, write: () => write() }
}

const hasHeard = (inbox: readonly { startLine: string }[]): boolean =>
  inbox.some(({ startLine }) => startLine.startsWith('SIP/2.0 200'))

test('a caller hears the answer only when no crash can lose the call any more', async () => {
  const { caller, leg, write } = await answeredByNode()
  // A round trip: what was sent before its answer has arrived by now.
  caller.request('OPTIONS', caller.leg(rig.uri('options')))
  await caller.next('200 OPTIONS')
  expect(hasHeard(caller.inbox)).toBe(false)
  expect(rig.opened).toMatchObject([{ callUuid: 'uuid-1', attempts: [{ status: 200 }] }])
  write()
  caller.learn(leg, await caller.next('200 INVITE'))
})

test('a disk that does not write keeps the caller waiting for half a second and no longer', async () => {
  const { caller } = await answeredByNode()
  rig.time.advance(499)
  expect(hasHeard(caller.inbox)).toBe(false)
  rig.time.advance(101)
  await caller.next('200 INVITE')
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
