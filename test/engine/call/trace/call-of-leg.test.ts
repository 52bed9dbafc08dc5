/** By the Call-ID of a message its call is found, for HEP. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { startCallRig, talk, type CallRig } from '../../../support/call-rig.ts'
import { sdp } from '../../../support/sip-peer.ts'
import { establish } from '../../../support/transfer-rig.ts'

let rig: CallRig

beforeEach(async () => {
  rig = await startCallRig()
})
afterEach(() => rig.stop())

async function shortCall() {
  rig.answers.candidates.length = 0
  const { caller, node, leg, invite } = await talk(rig)
  caller.request('BYE', leg)
  node.reply(await node.next('BYE'), 200)
  await caller.next('200 BYE')
  await rig.record()
  return [leg.callId, invite.get('Call-ID')]
}

const uuidsOf = (callIds: readonly string[]) => callIds.map((callId) => rig.calls.uuidOf(callId))

test('both legs lead to their call, and for a while after its end', async () => {
  const legs = await shortCall()
  expect(uuidsOf(legs)).toEqual(['uuid-1', 'uuid-1'])
  await rig.advance(32_000)
  const next = await shortCall()
  expect(uuidsOf([...legs, ...next])).toEqual(['uuid-1', 'uuid-1', 'uuid-2', 'uuid-2'])
  for (let call = 0; call < 2; call += 1) {
    await rig.advance(33_000)
    await shortCall()
  }
  expect(uuidsOf([...legs, 'another'])).toEqual([undefined, undefined, undefined])
})

test('after a transfer a leg stays with its first call, and the new party has the new one', async () => {
  const { a, b, bLeg, aLeg } = await establish(rig)
  const c = await rig.node()
  rig.answers.candidates.shift()
  await rig.control.transfer({ callUuid: 'uuid-1', destination: '15550100', moved: 'callee' })
  const toC = await c.next('INVITE')
  c.reply(toC, 200, { tag: 'c', body: sdp('answer of c') })
  b.reply(await b.next('INVITE'), 200, { body: sdp('answer of b') })
  a.reply(await a.next('BYE'), 200)
  const legs = [aLeg.callId, bLeg.callId, toC.get('Call-ID')]
  expect(uuidsOf(legs)).toEqual(['uuid-1', 'uuid-1', 'uuid-2'])
  b.request('BYE', bLeg)
  c.reply(await c.next('BYE'), 200)
  await rig.until(() => rig.records.length === 2)
  expect(uuidsOf(legs)).toEqual(['uuid-1', 'uuid-1', 'uuid-2'])
})
