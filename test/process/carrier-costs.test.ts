/**
 * What a carrier takes for a call: calls on raw sockets, and what the records, the reports and
 * webhooks say of them to those who may know it.
 */
import { readFileSync, writeFileSync } from 'node:fs'
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
/** The gateway of the tenant's own carrier. */
let ours: SipPeer
let tollgate: TollgateProcess
let root: string
let ofAcme: string
let phone: DigestPhone
/** It pays in another currency. */
let euro: DigestPhone

const plan = (name: string, more: object = {}) => ({ name, currency: 'USD', ...more })

const rate = (rate_plan: string, prefix: string, minute: string, more: object = {}) => ({
  rate_plan,
  prefix,
  rate_per_minute: minute,
  ...more,
})

const carrier = (name: string, port: number, more: object = {}) => ({
  name,
  direction: 'out',
  gateways: [{ host: '127.0.0.1', port }],
  ...more,
})

const seed = () => ({
  tenants: [{ slug: 'acme', domains: [domain] }],
  rate_plans: [
    plan('retail', { tenant: 'acme' }),
    plan('cost of north', { rounding: 'down', decimals: 2 }),
    plan('cost of south'),
    plan('cost of ours', { tenant: 'acme', rounding: 'half_up', decimals: 3 }),
    plan('in euro', { tenant: 'acme', currency: 'EUR' }),
  ],
  rates: [
    rate('retail', '', '6.00', { tenant: 'acme' }),
    rate('cost of north', '49', '0.25', { first_increment: 60, increment: 60 }),
    rate('cost of north', '4915', '0.9999', { first_increment: 60, increment: 6 }),
    rate('cost of south', '', '9.00'),
    rate('cost of ours', '33', '7.20', { tenant: 'acme', connect_fee: '0.0005' }),
    rate('in euro', '', '1.00', { tenant: 'acme' }),
  ],
  customers: [
    { name: 'acme', tenant: 'acme', rate_plan: 'retail', numbers: [], balance: '50.00' },
    { name: 'euro', tenant: 'acme', rate_plan: 'in euro', numbers: [], balance: '50.00' },
  ],
  extensions: [
    ['103', 'acme'],
    ['104', 'euro'],
  ].map(([extension, customer]) => ({
    tenant: 'acme',
    extension,
    password: `secret-${extension}`,
    display_name: extension,
    customer,
  })),
  carriers: [
    carrier('north', north.port, { rate_plan: 'cost of north' }),
    carrier('south', south.port, { rate_plan: 'cost of south' }),
    carrier('ours', ours.port, { tenant: 'acme', rate_plan: 'cost of ours' }),
  ],
  outbound_routes: [
    { name: 'first', prefix: '49', carrier: 'south', priority: 1 },
    { name: 'second', prefix: '49', carrier: 'north', priority: 2 },
    { name: 'unpriced', prefix: '47', carrier: 'north' },
    { name: 'own', tenant: 'acme', prefix: '33', carrier: 'ours' },
  ],
})

beforeAll(async () => {
  north = await SipPeer.openPatient(anywhere)
  south = await SipPeer.openPatient(anywhere)
  ours = await SipPeer.openPatient(anywhere)
  for (const peer of [north, south, ours]) peer.always('OPTIONS', 200, { tag: 'probed' })
  tollgate = await TollgateProcess.start(seed(), { ...patientInstances, DRAIN_SECONDS: '0' })
  root = await tollgate.createKey('--name', 'ops', '--scopes', '*')
  ofAcme = await tollgate.createKey('--name', 'acme', '--scopes', '*', '--tenant', 'acme')
  phone = await openPhone('103')
  euro = await openPhone('104')
})
afterAll(async () => {
  phone.close()
  euro.close()
  north.close()
  south.close()
  ours.close()
  await tollgate.stop()
})

async function openPhone(user: string): Promise<DigestPhone> {
  const account = { user, domain, password: `secret-${user}` }
  const opened = await DigestPhone.open(tollgate.listener(), account)
  opened.peer.always('OPTIONS', 200, { tag: 'probed' })
  return opened
}

async function api(token: string, path: string, method = 'GET', body?: object) {
  const answer = await fetch(`http://127.0.0.1:${tollgate.apiPort}/api/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    ...(body && { body: JSON.stringify(body) }),
  })
  return { status: answer.status, text: await answer.text() }
}

/** Dials, is answered by `by`, and talks. */
async function talk(number: string, by: SipPeer, from = phone): Promise<Leg> {
  const leg = await from.call(number)
  by.reply(await by.next('INVITE'), 200, { tag: `t${number}`, body: sdp('answer') })
  from.peer.learn(leg, await from.answerTo(leg))
  from.peer.request('ACK', leg)
  await by.next('ACK')
  return leg
}

async function hangUp(leg: Leg, by: SipPeer, from = phone): Promise<void> {
  from.peer.request('BYE', leg)
  by.reply(await by.next('BYE'), 200)
  await from.peer.next('200 BYE')
}

/** The journal as another version of the program would find it. */
function forgetStates(file: string): void {
  const lines = readFileSync(file, 'latin1').split('\n')
  writeFileSync(file, lines.filter((line) => !line.includes('{"saved":')).join('\n'), 'latin1')
}

/** The record of the last call to this number, as a credential sees it. */
async function recordOf(number: string, token = root): Promise<Record<string, unknown>> {
  return eventually(async () => {
    const day = `start_date=${new Date(Date.now() - 3_600_000).toISOString()}`
    const period = `${day}&end_date=${new Date(Date.now() + 3_600_000).toISOString()}`
    const { text } = await api(token, `/reports/cdrs?${period}`)
    const { records } = JSON.parse(text) as { records: Record<string, unknown>[] }
    const found = records.findLast((each) => each['destination_number'] === number)
    if (found === undefined) throw new Error(`no record of ${number}`)
    return found
  })
}

test('the carrier that has answered is paid by its own increments and rounding; one that has not is not', async () => {
  const leg = phone.call('4930555')
  south.reply(await south.next('INVITE'), 503, { tag: 's' })
  await south.next('ACK')
  const answered = await leg
  north.reply(await north.next('INVITE'), 200, { tag: 'n', body: sdp('answer') })
  phone.peer.learn(answered, await phone.answerTo(answered))
  phone.peer.request('ACK', answered)
  await north.next('ACK')
  await hangUp(answered, north)
  // One second: a whole minute is bought, and a second is sold.
  expect(await recordOf('4930555')).toMatchObject({
    billsec: 1,
    carrier: 'north',
    cost_exact: '0.10',
    carrier_cost: 0.25,
    carrier_cost_exact: '0.25',
    carrier_currency: 'USD',
    carrier_prefix: '49',
    margin: -0.15,
    margin_exact: '-0.15',
  })
})

test('a tenant does not see what a carrier of the platform takes, in no form', async () => {
  expect(await recordOf('4930555', ofAcme)).toMatchObject({
    cost_exact: '0.10',
    carrier: 'north',
    carrier_cost: null,
    carrier_cost_exact: null,
    carrier_currency: null,
    carrier_prefix: null,
    margin: null,
    margin_exact: null,
  })
})

test('it sees what its own carrier takes; in another currency there is no margin', async () => {
  await hangUp(await talk('33155', ours), ours)
  // 0.0005 + 0.12 is 0.1205, which is half a thousandth above 0.12.
  const own = { carrier_cost_exact: '0.121', carrier_prefix: '33', margin_exact: '-0.021' }
  for (const token of [root, ofAcme]) expect(await recordOf('33155', token)).toMatchObject(own)
  await hangUp(await talk('33911', ours, euro), ours, euro)
  const other = { currency: 'EUR', carrier_currency: 'USD', carrier_cost_exact: '0.121' }
  for (const token of [root, ofAcme])
    expect(await recordOf('33911', token)).toMatchObject({ ...other, margin: null })
})

test('a carrier whose plan has no price for the number costs nothing that is known', async () => {
  await hangUp(await talk('4722', north), north)
  const record = await recordOf('4722')
  expect(record).toMatchObject({ carrier: 'north', carrier_cost: null, margin: null })
})

test('a call that outlives the process keeps what was bought, whatever the plan says meanwhile', async () => {
  const ringing = phone.call('491511')
  south.reply(await south.next('INVITE'), 503, { tag: 's2' })
  await south.next('ACK')
  const leg = await ringing
  north.reply(await north.next('INVITE'), 200, { tag: 'n2', body: sdp('answer') })
  phone.peer.learn(leg, await phone.answerTo(leg))
  phone.peer.request('ACK', leg)
  await north.next('ACK')
  await tollgate.kill()
  tollgate.change("UPDATE rate SET rate_per_minute_micros = 1 WHERE prefix = '4915'")
  tollgate.change("UPDATE rate_plan SET rounding = 'up' WHERE name = 'cost of north'")
  await tollgate.restart()
  await hangUp(leg, north)
  expect(await recordOf('491511')).toMatchObject({
    disposition: 'ANSWERED',
    carrier_prefix: '4915',
    // 0.9999 a minute, rounded down to two decimals.
    carrier_cost_exact: '0.99',
  })
})

test('a call that a crash has ended has cost its carrier until then', async () => {
  const leg = await talk('33166', ours)
  expect(leg.from).toContain('103')
  await tollgate.kill()
  // Nobody is there any more.
  for (const file of tollgate.journalFiles()) forgetStates(file)
  await tollgate.restart()
  expect(await recordOf('33166')).toMatchObject({ recovered: true, carrier_prefix: '33' })
  expect((await recordOf('33166'))['carrier_cost']).toBeGreaterThan(0)
})
