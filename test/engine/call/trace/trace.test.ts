import { afterEach, beforeEach, expect, test } from 'vitest'
import { traceOf } from '../../../../engine/call/trace/trace.ts'
import type { Trace } from '../../../../schema/contracts/calls.ts'
import { startCallRig, talk, type CallRig } from '../../../support/call-rig.ts'
import { sdp } from '../../../support/sip-peer.ts'
import { denied, hangUp } from '../steps.ts'

let rig: CallRig

beforeEach(async () => {
  rig = await startCallRig()
})
afterEach(() => rig.stop())

async function trace(callUuid = 'uuid-1'): Promise<Trace> {
  const { calls, messages } = rig
  const found = await traceOf(callUuid, { calls, messages, pause: () => Promise.resolve() })
  if (!found) throw new Error('no trace')
  return found
}

/** One line per entry: `< INVITE sip:…` received by leg, `> SIP/2.0 …` sent, `= what` decided. */
const outline = ({ entries, legs }: Trace): string[] =>
  entries.map((entry) => {
    if (entry.kind === 'decision') return `= ${entry.what}`
    const what = entry.text.split(/ sip:|\r\n/)[0]
    const arrow = entry.direction === 'received' ? '<' : '>'
    return `${legs.indexOf(entry.leg) === 0 ? 'a' : 'b'} ${arrow} ${what}`
  })

test('a trace has the messages of both legs and what was decided', async () => {
  const { caller, node, leg, invite } = await talk(rig)
  await rig.advance(1)
  const answer = await hangUp(caller, leg, node)
  await rig.record()
  await rig.idle()
  const story = await trace()
  const lines = outline(story)
  for (const line of [
    'a < INVITE',
    '= recognized',
    '= charged',
    '= routed',
    'b > INVITE',
    'b < SIP/2.0 200 Test',
    'a > SIP/2.0 200 OK',
    'a < ACK',
    '= tried',
    'a < BYE',
    'b > BYE',
    '= ended',
  ])
    expect(lines).toContain(line)
  expect(lines.at(-1)).toBe('= ended')
  // As they went out, every header of them.
  const texts = story.entries.map((entry) => (entry.kind === 'message' ? entry.text : ''))
  expect(texts).toContain(invite.text)
  expect(texts).toContain(answer.text)
  expect(story).toMatchObject({ tenantId: 3, isComplete: true })
  const received = story.entries.find((entry) => entry.kind === 'message')
  expect(received).toMatchObject({ transport: 'udp', address: `127.0.0.1:${caller.port}` })
  expect(story.entries.map(({ at }) => at)).toEqual(
    story.entries.map(({ at }) => at).toSorted((a, b) => a - b),
  )
})

test('decisions tell the verdict and the candidates, and no password', async () => {
  rig.answers.authorize = denied('insufficient_funds')
  const caller = await rig.caller()
  caller.request('INVITE', caller.leg(rig.uri('1555')), {
    headers: ['Authorization: Digest response="cafe"'],
    body: sdp('x').replace('a=sendrecv', 'a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:c2VjcmV0'),
  })
  await caller.next('402 INVITE')
  await rig.record()
  await rig.idle()
  const { entries } = await trace()
  expect(entries).toContainEqual(
    expect.objectContaining({
      what: 'charged',
      detail: expect.objectContaining({ verdict: 'denied', code: 'insufficient_funds' }) as object,
    }),
  )
  const text = JSON.stringify(entries)
  expect(text).not.toContain('cafe')
  expect(text).not.toContain('c2VjcmV0')
  expect(text).toContain('(not shown)')
})

test('a refusal tells what the payer had', async () => {
  const account = { customerId: 7, tenantId: 3, ratePrefix: '1', currency: 'USD' }
  const funds = { balanceMicros: -1_230_000, availableMicros: 0 }
  rig.answers.authorize = () =>
    Promise.resolve({
      kind: 'denied',
      code: 'insufficient_funds',
      funds,
      account: { ...account, isUnauthorizedByOcs: false },
    })
  const caller = await rig.caller()
  caller.request('INVITE', caller.leg(rig.uri('1555')), { body: sdp('x') })
  await caller.next('402 INVITE')
  await rig.record()
  await rig.idle()
  const charged = (await trace()).entries.find(
    (entry) => entry.kind === 'decision' && entry.what === 'charged',
  )
  expect(charged).toMatchObject({
    detail: { customerId: 7, balance: '-1.23', available: '0.00', currency: 'USD' },
  })
})
