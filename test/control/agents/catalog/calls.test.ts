import { expect, test } from 'vitest'
import { openToolRig, storeRecord } from '../../../support/tools-rig.ts'
import { runSql } from '../../../support/stored.ts'

type Found = { records: { call_uuid: string }[]; cursor: string | null }

test('search_cdrs shows every record once, newest first, over as many answers as it takes', async () => {
  const rig = await openToolRig()
  await runSql(rig.store, 'DELETE FROM cdr')
  // Several begin in the same millisecond.
  for (let index = 0; index < 1_203; index += 1)
    await storeRecord(rig, null, `call ${index}`, {
      start_stamp: rig.now() - 1_000_000 + Math.floor(index / 3),
      caller_id_number: index % 100 === 7 ? 'wanted' : 'other',
    })
  const search = async (given: object) => {
    const seen: string[] = []
    for (let cursor: string | null | undefined; cursor !== null;) {
      const answer = await rig.tool('search_cdrs', {
        ...given,
        ...(cursor !== undefined && { cursor }),
      })
      const found = answer.data<Found>()
      seen.push(...found.records.map(({ call_uuid }) => call_uuid))
      cursor = found.cursor
    }
    return seen
  }
  const expected = Array.from({ length: 1_203 }, (_, index) => `call ${1_202 - index}`)
  expect(await search({ limit: 200 })).toEqual(expected)
  expect(await search({ limit: 5, number: 'want' })).toEqual(
    expected.filter((_, index) => (1_202 - index) % 100 === 7),
  )
  expect(await search({ disposition: 'BUSY' })).toEqual([])
  expect(await search({ end_date: '2020-01-01T00:00:00Z' })).toEqual([])
})

test('each filter finds the calls that have it, and all of them together those that have all', async () => {
  const rig = await openToolRig()
  await runSql(rig.store, 'DELETE FROM cdr')
  const wanted = {
    customer_id: 1,
    tenant_id: 1,
    caller_id_number: '49301',
    carrier: 'telco',
    destination_number: '+1900555',
    node: 'sip:10.0.0.1:5060;transport=udp',
    denial_code: 'no_rate',
    cost_micros: 250_000,
    currency: 'USD',
  }
  const plain = {
    customer_id: null,
    caller_id_number: '7',
    destination_number: '8',
    node: null,
    cost_micros: 0,
    currency: null,
  }
  await storeRecord(rig, 1, 'wanted', wanted)
  await storeRecord(rig, 2, 'other', plain)
  const filters = {
    customer: 'acme customer',
    tenant: 'acme',
    caller: '+49301',
    callee_prefix: '1900',
    denial_code: 'no_rate',
    node: '10.0.0.1',
    carrier: 'telco',
    min_cost: '0.25',
  }
  const found = async (given: object) =>
    (await rig.tool('search_cdrs', given)).data<Found>().records.map(({ call_uuid }) => call_uuid)
  for (const filter of [
    ...Object.entries(filters).map((one) => Object.fromEntries([one])),
    filters,
  ])
    expect([filter, await found(filter)]).toEqual([filter, ['wanted']])
  expect(await found({ ...filters, min_cost: '0.26' })).toEqual([])
})

test('fifty calls in brief are less than 8 kB', async () => {
  const rig = await openToolRig()
  for (let index = 0; index < 50; index += 1)
    await storeRecord(rig, null, `44444444-4444-4444-8444-4444444444${index + 10}`, {
      caller_id_number: '+493012345678',
      destination_number: '+4915112345678',
      denial_code: index % 2 === 0 ? 'insufficient_funds' : null,
    })
  const answer = await rig.tool('search_cdrs', { format: 'brief', limit: 50 })
  expect(answer.data<Found>().records).toHaveLength(50)
  expect(Buffer.byteLength(answer.text)).toBeLessThan(8_000)
  expect(answer.data<Found>().records.at(-1)).toEqual({
    call_uuid: '44444444-4444-4444-8444-444444444410',
    call: '2025-12-31T23:59:00Z +493012345678>+4915112345678 insufficient_funds 58s 0.10 USD',
  })
})

const uuid = '44444444-4444-4444-8444-444444444444'

const day = 86_400_000

type Explained = {
  money: object | null
  source_address: string
  unusual: string[]
  compared_with: number
}

/** Twenty usual calls of customer 1, one a day. */
async function opened(count = 20) {
  const rig = await openToolRig()
  await runSql(rig.store, 'DELETE FROM cdr')
  rig.tick(30 * day)
  for (let index = 1; index <= count; index += 1)
    await storeRecord(rig, 1, `usual ${index}`, { start_stamp: rig.now() - (index * day) / 2 })
  const explain = async (token = rig.root) => {
    const answer = await rig.tool('explain_call', { call_uuid: uuid }, token)
    return answer.data<Explained>()
  }
  return { ...rig, explain }
}

test('a call that was refused for money says what it needed and what there was', async () => {
  const rig = await opened()
  await storeRecord(rig, 1, uuid, {
    disposition: 'FAILED',
    sip_code: 402,
    denial_code: 'insufficient_funds',
    billsec: 0,
    answer_stamp: null,
    cost_micros: 0,
    required_micros: 600_000,
    available_micros: -50_000,
  })
  expect(await rig.explain()).toMatchObject({
    outcome: 'refused_by_platform',
    money: { required: '0.60', available: '-0.05', currency: 'USD' },
    source_address: '10.1.1.1',
    unusual: [],
    compared_with: 20,
  })
})

test('a call that is like the others of its customer has nothing unusual', async () => {
  const rig = await opened()
  await storeRecord(rig, 1, uuid, {})
  expect(await rig.explain()).toMatchObject({ money: null, unusual: [] })
})

test('a new source, caller and prefix and a price far above the mean are unusual', async () => {
  const rig = await opened()
  const strange = {
    source_address: '203.0.113.9',
    caller_id_number: '4930999',
    rate_prefix: '881',
    cost_micros: 4_200_000,
  }
  await storeRecord(rig, 1, uuid, strange)
  const of = "of the customer's last 20 calls in 14 days"
  expect((await rig.explain()).unusual).toEqual([
    `None ${of} came from 203.0.113.9.`,
    `None ${of} had this caller.`,
    `None ${of} went to prefix 881.`,
    `It cost 4.20; the mean ${of} is 0.10.`,
  ])
  // A foreign tenant does not find it, and a new customer has nothing to be compared with.
  const other = await rig.key({ tenant_scope: 'tenant', tenant_slug: 'other' })
  expect((await rig.tool('explain_call', { call_uuid: uuid }, other)).status).toBe(404)
  const few = await opened(9)
  await storeRecord(few, 1, uuid, strange)
  expect(await few.explain()).toMatchObject({ unusual: [], compared_with: 9 })
})

type Failure = { route: string; code: string; key: string | null; requests: number }

type Period = {
  calls: object
  api_requests: { total: number; failed: number }
  api_failures: Failure[]
}

async function openedApi() {
  const rig = await openToolRig()
  const acme = await rig.key({ name: 'of acme', tenant_scope: 'tenant', tenant_slug: 'acme' })
  const ask = (path: string, token?: string) =>
    rig.request(`/api/v1${path}`, token === undefined ? {} : { token })
  const periodOf = async (given: object, token = rig.root) => {
    await rig.access.tick()
    const answer = await rig.tool('get_telemetry', given, token)
    return answer.data<{ period?: Period }>().period
  }
  return { ...rig, acme, ask, periodOf }
}

test('a period has its calls by denial, and what failed of the API by route and key', async () => {
  const rig = await openedApi()
  await rig.ask('/customers/99', rig.root)
  await rig.ask('/customers/98', rig.root)
  await rig.ask('/users')
  await rig.ask('/metrics/history', rig.acme)
  const period = await rig.periodOf({ start: '2025-12-31' })
  expect(period).toMatchObject({
    calls: { total: 2, answered: 1, failed: 0, refused: { insufficient_funds: 1 } },
    api_failures: [
      { route: 'GET /api/v1/customers/:id', code: 'not_found', requests: 2 },
      expect.anything(),
      expect.anything(),
    ],
  })
  expect(period?.api_failures).toContainEqual(
    expect.objectContaining({ route: 'GET /api/v1/users', code: 'unauthorized', key: null }),
  )
  expect(period?.api_requests.failed).toBe(3)
  expect(period).toMatchObject({ api_failures_total: 3, complete: true })
  const short = await rig.periodOf({ start: '2025-12-31', limit: 1 })
  expect(short?.api_failures).toEqual(period?.api_failures.slice(0, 1))
  expect(short).toMatchObject({ api_failures_total: 3, complete: false })
  expect(await rig.periodOf({})).toBeUndefined()
  const before = await rig.periodOf({ start: '2025-12-01', end: '2025-12-02' })
  expect(before).toMatchObject({ calls: { total: 0 }, api_failures: [], complete: true })
})
