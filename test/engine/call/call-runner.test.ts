/** A bug ends one call at most, and no call without its record. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { HeaderFilter } from '../../../engine/call/sip-headers.ts'
import { OutgoingRequest } from '../../../engine/call/user-agent/outgoing-request.ts'
import { startCallRig, talk, type CallRig } from '../../support/call-rig.ts'
import { sdp } from '../../support/sip-peer.ts'

const bug = new Error('a bug')
const throwBug = (): never => {
  throw bug
}

let rig: CallRig

beforeEach(async () => {
  rig = await startCallRig()
})
afterEach(async () => {
  vi.restoreAllMocks()
  await rig.stop()
})

async function expectOneRecord(record: object): Promise<void> {
  expect(await rig.record()).toMatchObject(record)
  await rig.settle()
  expect(rig.records).toEqual([])
  expect(rig.calls.size).toBe(0)
  expect(rig.faults.splice(0)).toMatchObject([{ message: 'a call failed', error: bug }])
}

async function dialled(): Promise<void> {
  const [caller, node] = [await rig.caller(), await rig.node()]
  caller.request('INVITE', caller.leg(rig.uri('1555')), { body: sdp('offer') })
  await node.next('INVITE')
}

test('a command that fails keeps no other one from being performed', async () => {
  await dialled()
  vi.spyOn(OutgoingRequest.prototype, 'cancel').mockImplementation(throwBug)
  rig.calls.hangUp('uuid-1', 16)
  await expectOneRecord({ hangupBy: 'api', hangupCause: 'NORMAL_CLEARING' })
})

test('an event that cannot be handled ends its call, and the next call is served', async () => {
  const { caller, leg, node } = await talk(rig)
  vi.spyOn(HeaderFilter.prototype, 'bye').mockImplementationOnce(throwBug)
  caller.request('BYE', leg)
  await node.next('BYE')
  await expectOneRecord({ disposition: 'ANSWERED', billsec: 1, denialCode: 'fault' })
  rig.answers.candidates.length = 0
  await talk(rig)
  expect(rig.calls.size).toBe(1)
  rig.calls.hangUp('uuid-2', 16)
  await rig.record()
})
