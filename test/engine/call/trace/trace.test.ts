/** By the Call-ID of a message its call is found, for HEP. */
import { expect, test } from 'vitest'
import { MessageLog } from '../../../../engine/call/trace/message-log.ts'
import { traceOf, peersOf } from '../../../../engine/call/trace/trace.ts'
import type { Trace, TraceMessage } from '../../../../schema/contracts/calls.ts'
import { talk } from '../../../support/call-rig.ts'
import { sdp } from '../../../support/sip-peer.ts'
import { denied, hangUp, rig, rigForEachTest } from '../steps.ts'
import type { Note } from '../../../../engine/call/call-machine/state.ts'

rigForEachTest()

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
    headers: ['Authorization: Digest response="cafe"', 'X-Tollgate-Application: of the worker'],
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
  expect(text).not.toContain('of the worker')
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

const message = (
  direction: TraceMessage['direction'],
  text: string,
  leg = 'a',
  address = '10.0.0.9:5060',
): TraceMessage => ({ kind: 'message', at: 0, transport: 'udp', direction, leg, address, text })

const routedTo = (candidate: object): readonly Note[] => [
  // As far as it is read.
  { at: 0, what: 'routed', route: { kind: 'candidates', candidates: [candidate] } } as never,
]

test.each([
  ['From: "A" <sip:4930100@acme.example>;tag=1', '4930100'],
  ['f: <sip:acme.example>', 'acme.example'],
  ['Subject: x', null],
])('a caller whose INVITE has %j is %j', (header, name) => {
  const invite = message('received', `INVITE sip:x SIP/2.0\r\n${header}\r\n\r\n`)
  expect(peersOf(['a'], [invite], [])).toEqual([{ role: 'caller', name, address: '10.0.0.9:5060' }])
})

test.each([
  [{ kind: 'gateway', uri: 'sip:10.0.0.1:5060;transport=udp', carrierName: 'north' }, 'north'],
  [{ kind: 'agent', uri: 'sip:bot@10.0.0.1', name: 'concierge' }, 'concierge'],
  [{ kind: 'node', uri: 'sip:10.0.0.1:5060;transport=udp' }, '10.0.0.1'],
  [
    { kind: 'extension', uri: 'sip:100@acme.example', phones: [{ uri: 'sip:4940@10.0.0.1' }] },
    '100',
  ],
  [{ kind: 'gateway', uri: 'sip:10.0.0.2:5060', carrierName: 'south' }, '4940@10.0.0.1'],
])('a leg to %o is named %j', (candidate, name) => {
  const invite = message('sent', 'INVITE sip:4940@10.0.0.1 SIP/2.0\r\n\r\n')
  expect(peersOf(['a'], [invite], routedTo(candidate))).toEqual([
    // It has not answered.
    { role: 'called', name, address: null },
  ])
})

const pause = () => Promise.resolve()

const own = {
  address: '192.0.2.1',
  port: 5060,
  advertisedHost: 'sbc.example',
  advertisedPort: 5080,
}
const flow = { address: 'h', port: 1, listener: { protocol: 'udp', ...own } } as const
const head = 'received|udp|h|1\r\n'

test('messages are found by any of their Call-IDs, from a time on, oldest first', async () => {
  let now = 0
  const log = new MessageLog(() => now)
  for (const [at, text] of [
    [1, 'a-leg one'],
    [2, 'other'],
    [3, 'b-leg two'],
    [4, 'a-leg three'],
  ] as const) {
    now = at
    log.add('received', flow, text)
  }
  const found = await log.find(['a-leg', 'b-leg'], 2, pause)
  expect(found).toEqual([
    { at: 3, payload: `${head}b-leg two` },
    { at: 4, payload: `${head}a-leg three` },
  ])
})

test('the memory is bounded: the oldest messages go, the others stay whole', async () => {
  let now = 0
  const log = new MessageLog(() => now, 1_000)
  const text = (n: number): string => `${String(n).padStart(3, '0')} ${'ü'.repeat(n % 40)} x`
  for (; now < 500; now++) log.add('received', flow, text(now))
  const found = await log.find(['x'], 0, pause)
  expect(found).toHaveLength(log.size)
  expect(found.map(({ at, payload }) => payload === head + text(at))).not.toContain(false)
  expect(found.at(-1)?.at).toBe(499)
  expect(log.since).toBe(500 - log.size)
  const bytes = found.reduce((sum, { payload }) => sum + Buffer.byteLength(payload), 0)
  expect(bytes).toBeGreaterThan(500)
  expect(bytes).toBeLessThanOrEqual(1_000)
})
