/**
 * Least cost by the expected call, and calls at a loss: calls on raw sockets, and what records,
 * findings and the simulator say of them.
 */
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Listener } from '../../engine/sip-server/index.ts'
import { DigestPhone } from '../support/digest-phone.ts'
import { type Leg, sdp, SipPeer } from '../support/sip-peer.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { eventually, patientInstances } from '../support/waiting.ts'

const anywhere: Listener = {
  protocol: 'udp',
  address: '127.0.0.1',
  port: 9,
  advertisedHost: '127.0.0.1',
  advertisedPort: 9,
}
const domain = 'acme.example'

let north: SipPeer
let south: SipPeer
let tollgate: TollgateProcess
let root: string
let phone: DigestPhone
let strict: DigestPhone

const rate = (rate_plan: string, prefix: string, minute: string, more: object = {}) => ({
  rate_plan,
  prefix,
  rate_per_minute: minute,
  ...more,
})

const carrier = (name: string, port: number) => ({
  name,
  direction: 'out',
  rate_plan: `cost of ${name}`,
  gateways: [{ host: '127.0.0.1', port }],
})

const lcr = (prefix: string, more: object = {}) =>
  ['north', 'south'].map((name, index) => ({
    name: `${prefix} by ${name}`,
    prefix,
    carrier: name,
    priority: index + 1,
    mode: 'lcr',
    ...more,
  }))

const seed = () => ({
  tenants: [{ slug: 'acme', domains: [domain] }],
  rate_plans: [
    { name: 'retail', loss_protection: 'warn' },
    { name: 'cost of north' },
    { name: 'cost of south' },
  ],
  rates: [
    rate('retail', '', '0.10'),
    // Of a minute north is cheaper, of ten minutes south.
    rate('cost of north', '49', '0.03'),
    rate('cost of south', '49', '0.01', { connect_fee: '0.05' }),
    rate('cost of north', '33', '0.12'),
    rate('cost of south', '33', '0.13'),
    ...['34', '35'].map((prefix) => rate('cost of north', prefix, '0.12')),
    ...['34', '35'].map((prefix) => rate('cost of south', prefix, '0.13')),
    rate('cost of north', '44', '0.02'),
  ],
  customers: [
    { name: 'acme', tenant: 'acme', rate_plan: 'retail', numbers: [], balance: '500.00' },
    {
      name: 'strict',
      tenant: 'acme',
      rate_plan: 'retail',
      numbers: [],
      balance: '500.00',
    },
  ],
  extensions: [
    ['103', 'acme'],
    ['104', 'strict'],
  ].map(([extension, customer]) => ({
    tenant: 'acme',
    extension,
    password: `secret-${extension}`,
    display_name: extension,
    customer,
  })),
  carriers: [carrier('north', north.port), carrier('south', south.port)],
  outbound_routes: [
    ...lcr('49'),
    ...lcr('33'),
    ...lcr('44'),
    ...lcr('34', { loss_protection: 'refuse' }),
    ...lcr('35', { loss_protection: 'never' }),
    { name: '112', prefix: '112', carrier: 'north', emergency: true, loss_protection: 'strict' },
  ],
})

beforeAll(async () => {
  north = await SipPeer.openPatient(anywhere)
  south = await SipPeer.openPatient(anywhere)
  for (const peer of [north, south]) peer.always('OPTIONS', 200, { tag: 'probed' })
  tollgate = await TollgateProcess.start(seed(), { ...patientInstances, DRAIN_SECONDS: '0' })
  root = await tollgate.createKey('--name', 'ops', '--scopes', '*')
  phone = await openPhone('103')
  strict = await openPhone('104')
})
afterAll(async () => {
  phone.close()
  strict.close()
  north.close()
  south.close()
  await tollgate.stop()
})

async function openPhone(user: string): Promise<DigestPhone> {
  const account = { user, domain, password: `secret-${user}` }
  const opened = await DigestPhone.open(tollgate.listener(), account)
  opened.peer.always('OPTIONS', 200, { tag: 'probed' })
  return opened
}

async function api(path: string, method = 'GET', body?: object) {
  const answer = await fetch(`http://127.0.0.1:${tollgate.apiPort}/api/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${root}`, 'content-type': 'application/json' },
    ...(body && { body: JSON.stringify(body) }),
  })
  const text = await answer.text()
  return { status: answer.status, body: JSON.parse(text) as Record<string, unknown> }
}

/** Dials, is answered by `by`, and hangs up. */
async function talk(number: string, by: SipPeer, from = phone): Promise<void> {
  const leg: Leg = await from.call(number)
  by.reply(await by.next('INVITE'), 200, { tag: `t${number}`, body: sdp('answer') })
  from.peer.learn(leg, await from.answerTo(leg))
  from.peer.request('ACK', leg)
  await by.next('ACK')
  from.peer.request('BYE', leg)
  by.reply(await by.next('BYE'), 200)
  await from.peer.next('200 BYE')
}

/** The answer to a call that no carrier gets. */
async function refusal(number: string, from = phone): Promise<string> {
  const leg = await from.call(number)
  return (await from.answerTo(leg)).startLine
}

async function recordOf(number: string): Promise<Record<string, unknown>> {
  return eventually(async () => {
    const day = `start_date=${new Date(Date.now() - 3_600_000).toISOString()}`
    const period = `${day}&end_date=${new Date(Date.now() + 3_600_000).toISOString()}`
    const { body } = await api(`/reports/cdrs?${period}`)
    const records = body['records'] as Record<string, unknown>[]
    const found = records.findLast((each) => each['destination_number'] === number)
    if (found === undefined) throw new Error(`no record of ${number}`)
    return found
  })
}

const simulated = async (to: string) => {
  const { body } = await api('/telephony/simulate', 'POST', { from: '103', to })
  return body['data'] as {
    readonly verdict: string
    readonly code: string | null
    readonly candidates: readonly Record<string, unknown>[]
    readonly passed_over: readonly Record<string, unknown>[]
  }
}

test('the first INVITE goes to the carrier that is cheapest for the expected duration', async () => {
  await talk('4930555', north)
  const [first, second] = (await simulated('4930555')).candidates
  expect([first, second]).toMatchObject([
    {
      name: 'north',
      expected: {
        seconds: 60,
        price_exact: '0.10',
        cost_exact: '0.03',
        margin_exact: '0.07',
        is_below_margin: false,
      },
    },
    { name: 'south', expected: { cost_exact: '0.06', margin_exact: '0.04' } },
  ])
})

test('after a restart the order is that of how long calls were talked', async () => {
  await recordOf('4930555')
  await tollgate.kill()
  tollgate.change(`
    INSERT INTO cdr (call_uuid, call_id, direction, caller_id_number, destination_number,
      start_stamp, end_stamp, duration, billsec, disposition, sip_code, hangup_cause, hangup_by,
      attempts, source_address)
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30)
    SELECT 'u' || i, 'c' || i, 'outbound', '103', '4930' || i, 0, 0, 600, 600, 'ANSWERED', 200,
      'NORMAL_CLEARING', 'caller', '[]', '' FROM n`)
  await tollgate.restart()
  const { candidates } = await simulated('4930556')
  expect(candidates).toMatchObject([
    { name: 'south', expected: { seconds: 581, cost_exact: '0.1469' } },
    { name: 'north', expected: { cost_exact: '0.2905' } },
  ])
  await talk('4930556', south)
})

test('a carrier whose list has no price for the number gets no call', async () => {
  const leg = await phone.call('44200')
  north.reply(await north.next('INVITE'), 503, { tag: 'full' })
  await north.next('ACK')
  expect((await phone.answerTo(leg)).startLine).toContain('503')
  expect(await recordOf('44200')).toMatchObject({ denial_code: null })
  const { passed_over: passed } = await simulated('44200')
  expect(passed).toMatchObject([{ name: '44 by south', why: 'no_carrier_price' }])
})

test('warn lets a call go at a loss, and tells who loses what', async () => {
  await talk('33155', north)
  await talk('33156', north)
  const { body } = await api('/anomalies?kinds=margin')
  expect(body['data']).toMatchObject({
    findings: [
      {
        kind: 'margin',
        subject: 'prefix any of customer 1 by north',
        figures: { calls: 2, expected_price: 0.1, expected_cost: 0.12, expected_margin: -0.02 },
      },
    ],
  })
})

test('a route that refuses goes before the plan: 503, a record with its cause, and no charge', async () => {
  expect(await refusal('34995')).toContain('503')
  expect(await recordOf('34995')).toMatchObject({
    denial_code: 'no_profit',
    sip_code: 503,
    billsec: 0,
    cost_exact: '0.00',
    carrier: null,
  })
  const { verdict, code, passed_over: passed } = await simulated('34995')
  expect([verdict, code]).toEqual(['refused', 'no_profit'])
  expect(passed).toMatchObject([
    {
      name: '34 by north',
      why: 'below_margin',
      expected: { cost_exact: '0.12', margin_exact: '-0.02', is_below_margin: true },
    },
    { name: '34 by south', why: 'below_margin', expected: { margin_exact: '-0.03' } },
  ])
})

test('a customer that refuses goes before its plan, and a route that never does before the customer', async () => {
  const { body } = await api('/customers?search=strict')
  const [{ id }] = body['data'] as [{ readonly id: number }]
  const patch = { loss_protection: 'refuse', min_margin: '5%' }
  expect((await api(`/customers/${id}`, 'PATCH', patch)).body).toMatchObject({ data: patch })
  expect(await refusal('33157', strict)).toContain('503')
  await talk('35885', north, strict)
  await talk('33158', north)
  expect((await api(`/customers/${id}`, 'PATCH', { loss_protection: null })).status).toBe(400)
  const none = { loss_protection: null, min_margin: null }
  expect((await api(`/customers/${id}`, 'PATCH', none)).body).toMatchObject({ data: none })
  await talk('33159', north, strict)
})

test('a change of the plan holds for the next call', async () => {
  const { body } = await api('/rate-plans?search=retail')
  const [{ id }] = body['data'] as [{ readonly id: number }]
  await api(`/rate-plans/${id}`, 'PATCH', { loss_protection: 'refuse' })
  expect(await refusal('33160')).toContain('503')
  await api(`/rate-plans/${id}`, 'PATCH', { loss_protection: 'refuse', min_margin: '0.09' })
  expect(await refusal('4930557')).toContain('503')
  await api(`/rate-plans/${id}`, 'PATCH', { loss_protection: null, min_margin: null })
  await talk('33161', north)
})

test('an emergency call is never refused, whatever its route says', async () => {
  expect(await simulated('112')).toMatchObject({
    verdict: 'goes_on',
    candidates: [{ name: 'north', expected: { is_below_margin: false } }],
    passed_over: [],
  })
})
