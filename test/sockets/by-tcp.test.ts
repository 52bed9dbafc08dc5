/** Call control connected as an application on another machine would be: by TCP, with the library's own framing. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { traceOf } from '../../engine/call/trace/trace.ts'
import { type CallRig, startCallRig, talk } from '../support/call-rig.ts'
import { sdp } from '../support/sip-peer.ts'

let rig: CallRig

beforeEach(async () => {
  rig = await startCallRig({ app: 'tcp' })
})
afterEach(() => rig.stop())

test('a trace has every message of both legs as it went out', async () => {
  const { caller, node, leg, invite } = await talk(rig)
  caller.request('BYE', leg)
  node.reply(await node.next('BYE'), 200)
  const answer = await caller.next('200 BYE')
  await rig.record()
  await rig.idle()
  const { calls, messages } = rig
  const story = await traceOf('uuid-1', { calls, messages, pause: () => Promise.resolve() })
  const texts = story?.entries.map((entry) => (entry.kind === 'message' ? entry.text : ''))
  expect(texts).toContain(invite.text)
  expect(texts).toContain(answer.text)
  expect(story).toMatchObject({ tenantId: 3, isComplete: true })
})

test('when the SIP server goes away every call ends, ringing or answered, and nothing is kept', async () => {
  const { caller } = await talk(rig)
  const node = await rig.node()
  rig.answers.candidates.shift()
  caller.request('INVITE', caller.leg(rig.uri('1666')), { body: sdp('offer') })
  await node.next('INVITE')
  await rig.server.stop()
  const ended = [await rig.record(), await rig.record()]
  expect(ended.map(({ disposition }) => disposition).toSorted()).toEqual(['ANSWERED', 'FAILED'])
  expect(ended.map(({ denialCode }) => denialCode)).toEqual(['connection_lost', 'connection_lost'])
  await rig.idle()
})
