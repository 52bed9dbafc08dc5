/** By the Call-ID of a message its call is found, for HEP. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { startCallRig, talk, type CallRig } from '../../../support/call-rig.ts'
import { hangUp } from '../steps.ts'

let rig: CallRig

beforeEach(async () => {
  rig = await startCallRig()
})
afterEach(() => rig.stop())

async function shortCall() {
  rig.answers.candidates.length = 0
  const { caller, node, leg, invite } = await talk(rig)
  await hangUp(caller, leg, node)
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
