import { afterEach, expect, test, beforeEach } from 'vitest'
import { type CallRig, startCallRig, startedAt, talk } from '../../../support/call-rig.ts'
import { sdp } from '../../../support/sip-peer.ts'
import { carrierOf, carrierOrigin, denied, dial } from '../steps.ts'

let rig: CallRig

beforeEach(async () => {
  rig = await startCallRig()
})
afterEach(() => rig.stop())

test('an answered call is bridged, journalled, and recorded when the caller hangs up', async () => {
  const { caller, node, leg, invite } = await dial(rig)
  expect(invite.body).toBe(sdp('offer'))
  node.reply(invite, 180, { tag: 'b' })
  await caller.next(180)
  expect(rig.calls.find('uuid-1')?.state).toBe('RINGING')
  await rig.advance(1_000)
  node.reply(invite, 200, { tag: 'b', body: sdp('answer') })
  const answer = await caller.next('200 INVITE')
  expect(answer.body).toBe(sdp('answer'))
  await node.next('ACK')
  caller.learn(leg, answer)
  caller.request('ACK', leg)
  await rig.until(() => rig.calls.find('uuid-1')?.state === 'ACTIVE')
  const answeredAt = startedAt + 1_000
  expect(rig.opened).toMatchObject([{ callUuid: 'uuid-1', answeredAt, customerId: 7 }])
  const peers = { caller: `127.0.0.1:${caller.port}`, callee: `127.0.0.1:${node.port}` }
  expect(rig.calls.find('uuid-1')).toMatchObject({ calledNumber: '1555', setId: 1, peers })

  await rig.advance(12_300)
  caller.request('BYE', leg, { headers: ['Reason: Q.850;cause=16'] })
  await caller.next('200 BYE')
  const bye = await node.next('BYE')
  expect(bye.get('Reason')).toBe('Q.850;cause=16')
  node.reply(bye, 200)

  expect(await rig.record()).toMatchObject({
    callUuid: 'uuid-1',
    calledNumber: '1555',
    startedAt,
    answeredAt,
    endedAt: answeredAt + 12_300,
    disposition: 'ANSWERED',
    sipCode: 200,
    hangupBy: 'caller',
    hangupCause: 'NORMAL_CLEARING',
    billsec: 13,
    postDialDelayMs: 0,
    attempts: [{ status: 200 }],
  })
  expect(rig.outcomes).toEqual([[1, 'answered']])
  await rig.idle()
})

test('neither side learns anything of the other but what concerns the call', async () => {
  await rig.stop()
  rig = await startCallRig({ passX: ['x-customer', 'x-why'] })
  const caller = await rig.caller()
  const node = await rig.node()
  const leg = caller.leg(rig.uri('1555'))
  const secrets = [
    'Record-Route: <sip:inner.example;lr>',
    'User-Agent: secret',
    'Server: secret',
    'Authorization: Digest username="secret"',
    'X-Call-UUID: forged',
    'X-Internal: secret 10.9.9.9',
  ]
  const passed = [
    'P-Asserted-Identity: "A" <sip:+15550001@inner.example>',
    'Privacy: id',
    'X-Customer: 42',
    'Diversion: <sip:2000@inner.example>;reason=no-answer',
  ]
  caller.request('INVITE', leg, { body: sdp('offer'), headers: [...secrets, ...passed] })

  const invite = await node.next('INVITE')
  expect(invite.text).not.toMatch(/inner\.example|secret|forged/)
  expect(invite.all('Via')).toHaveLength(1)
  expect(invite.get('Call-ID')).not.toBe(leg.callId)
  expect(invite.get('Contact')).not.toContain(String(caller.port))
  expect(invite.get('From')).not.toContain(String(caller.port))
  expect(invite.get('Max-Forwards')).toBe('69')
  expect(invite.get('X-Call-UUID')).toBe('uuid-1')
  expect(invite.get('X-Customer')).toBe('42')
  expect(invite.get('Privacy')).toBe('id')
  expect(invite.get('P-Asserted-Identity')).toMatch(/^"A" <sip:\+15550001@127\.0\.0\.1:\d+>$/)
  expect(invite.get('Diversion')).toMatch(/^<sip:2000@127\.0\.0\.1:\d+>;reason=no-answer$/)

  node.reply(invite, 486, { headers: ['Server: secret', 'X-Place: secret', 'X-Why: lunch'] })
  const answer = await caller.next(486)
  expect(answer.text).not.toContain('secret')
  expect(answer.get('X-Why')).toBe('lunch')
  expect(await rig.record()).toMatchObject({
    disposition: 'BUSY',
    sipCode: 486,
    hangupBy: 'callee',
    hangupCause: 'USER_BUSY',
    callerNumber: '+15550001',
  })
})

type Answers = CallRig['answers']
const unavailable = '503 Service Unavailable'
const noNode = '503 No Backend PBX Nodes Available'
const later = { 'Retry-After': '5' }

/** A refusal's name, how it comes about, what the caller hears, and what the record says. */
type Refusal = readonly [
  name: string,
  arrange: Partial<Answers>,
  line: string,
  code: string,
  shows?: Readonly<Record<string, string>>,
]

const refusals: readonly Refusal[] = [
  ['an unknown source', { origin: { kind: 'unknown' } }, '403 Forbidden', 'unknown_source'],
  [
    'a caller without funds',
    { authorize: denied('insufficient_funds') },
    '402 Payment Required - Insufficient Funds',
    'insufficient_funds',
  ],
  [
    'a charging system that does not answer',
    { authorize: () => Promise.resolve({ kind: 'unreachable', retryAfterSeconds: 9 }) },
    unavailable,
    'ocs_unreachable',
    { 'Retry-After': '9' },
  ],
  ['no node', { candidates: [] }, noNode, 'no_candidate'],
  ['nodes at their limit', { candidates: [], isAtCapacity: true }, noNode, 'node_limit', later],
  [
    'a carrier at its limit',
    { admitsCarrier: false, origin: carrierOrigin({ carrierId: 4 }) },
    unavailable,
    'carrier_limit',
    later,
  ],
]

async function expectRefused(line: string, code: string, shows = {}, headers: string[] = []) {
  const [caller, leg] = await called(headers)
  const answer = await caller.next((message) => message.status >= 300)
  expect(answer.startLine).toBe(`SIP/2.0 ${line}`)
  for (const [name, value] of Object.entries(shows)) expect(answer.get(name)).toBe(value)
  caller.learn(leg, answer)
  caller.request('ACK', leg)
  const { status } = answer
  const said = { denialCode: code, hangupBy: 'system', sipCode: status, billsec: 0 }
  expect(await rig.record()).toMatchObject(said)
  await rig.idle()
}

async function called(headers: readonly string[]) {
  const caller = await rig.caller()
  const leg = caller.leg(rig.uri('1555'))
  caller.request('INVITE', leg, { body: sdp('offer'), headers })
  return [caller, leg] as const
}

for (const [name, arrange, line, code, shows] of refusals)
  test(`${name}: one refusal, and one record with the reason`, async () => {
    const node = await rig.node()
    Object.assign(rig.answers, arrange)
    await expectRefused(line, code, shows)
    expect(node.inbox).toEqual([])
  })

test('a drain, and an extension that we do not do, refuse calls', async () => {
  const headers = ['Require: timer, 100rel, precondition']
  const shows = { Unsupported: 'precondition' }
  await expectRefused('420 Bad Extension', 'bad_extension', shows, headers)
  void rig.calls.drain(startedAt + 1_000)
  await expectRefused(unavailable, 'draining', later)
})

test('Max-Forwards that is used up is a loop: 483', async () => {
  const caller = await rig.caller()
  await rig.node()
  const leg = caller.leg(rig.uri('1555'))
  const text = caller.request('OPTIONS', leg).replaceAll('OPTIONS', 'INVITE')
  caller.send(text.replace('Max-Forwards: 70', 'Max-Forwards: 0'))
  await caller.next(483)
  expect(await rig.record()).toMatchObject({ denialCode: 'too_many_hops', sipCode: 483 })
})

test('a call that comes back for the same number is a loop: 482; for another it is a new call', async () => {
  const { node, invite } = await talk(rig)
  const mark = `X-Call-UUID: ${invite.get('X-Call-UUID')}`
  const same = node.leg(rig.uri('1555'))
  node.request('INVITE', same, { body: sdp('again'), headers: [mark] })
  await node.next(482)
  expect(await rig.record()).toMatchObject({ denialCode: 'loop' })

  const other = node.leg(rig.uri('1666'))
  node.request('INVITE', other, { body: sdp('on'), headers: [mark] })
  expect((await node.next('INVITE')).uri).toContain('1666@')
})

test('an emergency call asks neither wallet nor drain', async () => {
  const caller = await rig.caller()
  rig.answers.origin = { kind: 'node', nodeId: 1, setId: 1 }
  const ambulance = await carrierOf(rig, { carrierName: 'ambulance', number: '112' }, true)
  void rig.calls.drain(startedAt + 60_000)
  caller.request('INVITE', caller.leg(rig.uri('112')), { body: sdp('help') })
  const invite = await ambulance.next('INVITE')
  expect(invite.get('X-Call-UUID')).toBe('')
  expect(rig.calls.countByCarrier(9)).toBe(1)
  ambulance.reply(invite, 603, { tag: 'b' })
  await caller.next(603)
  expect(rig.asked).toEqual([])
  expect(await rig.record()).toMatchObject({ direction: 'outbound', carrier: 'ambulance' })
  expect(rig.calls.countByCarrier(9)).toBe(0)
})

test('a party that has hung up may call again at once, however long the disk takes', async () => {
  rig.answers.origin = { kind: 'node', nodeId: 1, setId: 1 }
  const [caller, callee] = [await rig.caller(), await carrierOf(rig)]
  let store = (): void => undefined
  rig.answers.stored = () => new Promise((resolve) => (store = () => resolve(undefined)))
  caller.request('INVITE', caller.leg(rig.uri('1555')), { body: sdp('offer') })
  const invite = await callee.next('INVITE')
  expect(rig.calls.countByCarrier(9)).toBe(1)
  callee.reply(invite, 486, { tag: 'b' })
  await caller.next(486)
  expect(rig.calls.countByCarrier(9)).toBe(0)
  // It is not forgotten: a process that stops waits for its record.
  expect(rig.calls.list()).toHaveLength(1)
  store()
  await rig.until(() => rig.calls.list().length === 0)
})

test('of the calls of unknown sources most leave no record, no event, no story and nothing to pay', async () => {
  rig.answers.origin = { kind: 'unknown' }
  rig.answers.isSampled = false
  const caller = await rig.caller()
  for (const number of ['1900', '1901', '1902']) {
    const leg = caller.leg(rig.uri(number))
    caller.request('INVITE', leg, { body: sdp('offer') })
    await caller.next('403 INVITE')
    caller.request('ACK', leg)
  }
  rig.answers.isSampled = true
  caller.request('INVITE', caller.leg(rig.uri('1903')), { body: sdp('offer') })
  await caller.next('403 INVITE')
  expect(await rig.record()).toMatchObject({ calledNumber: '1903', denialCode: 'unknown_source' })
  expect([rig.records, rig.asked, rig.calls.size]).toEqual([[], [], 0])
  expect(rig.events.map(({ type }) => type)).toEqual(['call.ended'])
  expect(rig.strangers).toHaveLength(4)
})
