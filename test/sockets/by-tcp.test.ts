/** Call control connected as an application on another machine would be: by TCP, with the library's own framing. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { traceOf } from '../../engine/call/trace/trace.ts'
import { type CallRig, startCallRig, talk } from '../support/call-rig.ts'
import { sdp } from '../support/sip-peer.ts'
import { answeredBy, recordsOf, transferring } from '../support/transfer-rig.ts'

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

test('crossing BYEs are both answered and end the call once', async () => {
  const { caller, node, leg, nodeLeg } = await talk(rig)
  caller.request('BYE', leg)
  node.request('BYE', nodeLeg)
  await Promise.all([caller.next('200 BYE'), node.next('200 BYE')])
  await rig.record()
  for (const peer of [caller, node])
    for (const bye of peer.inbox.filter(({ method }) => method === 'BYE')) peer.reply(bye, 481)
  await rig.idle()
  expect(rig.records).toEqual([])
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

test('a request whose handling goes wrong is answered with 500', async () => {
  vi.spyOn(rig.calls, 'isDraining', 'get').mockImplementation(() => {
    throw new Error('a bug')
  })
  const caller = await rig.caller()
  caller.request('OPTIONS', caller.leg(rig.uri('ping')))
  await caller.next('500 OPTIONS')
  expect(rig.faults.splice(0)).toMatchObject([{ message: 'a request could not be handled' }])
})

test('a transfer leads to the new party, and the first call ends', async () => {
  const { a, b, bLeg, c } = await answeredBy(await transferring(rig))
  await rig.advance(4_000)
  a.reply(await a.next('BYE'), 200)
  b.request('BYE', bLeg)
  c.reply(await c.next('BYE'), 200)
  await recordsOf(rig, 2)
  await rig.idle()
  expect(rig.records).toEqual([])
})
