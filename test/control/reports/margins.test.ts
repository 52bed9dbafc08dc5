import { expect, test } from 'vitest'
import type { CallRecord } from '../../../schema/contracts/call-record.ts'
import { marginGroupings } from '../../../control/reports/margin-sums.ts'
import { askMargins, margins } from '../../../control/reports/margins.ts'
import type { Store } from '../../../schema/storage/store.ts'
import { answeredCall, openReportRig } from '../../support/report-rig.ts'
import { runSql } from '../../support/stored.ts'
import { placeOf, resultOf, rollUpAt } from '../../support/summed-calls.ts'

const path = '/api/v1/reports/margins'
const period = 'start_date=2026-01-01T00:00:00Z&end_date=2026-01-03T00:00:00Z'
const day = 86_400_000

const bought = (costMicros: number, more: Partial<CallRecord['carrierCost']> = {}) => ({
  carrierCost: { costMicros, prefix: '49', currency: 'USD', tenantId: null, ...more },
})

async function open() {
  const rig = await openReportRig()
  const acme = await rig.tenant('acme')
  const root = await rig.key()
  const ofAcme = await rig.key({ name: 'acme', tenant_scope: 'tenant', tenant_slug: 'acme' })
  const outbound = { direction: 'outbound', calledNumber: '+4930100' } as const
  const { startedAt } = answeredCall
  const storeCall = (change: Partial<CallRecord>, costMicros: number) =>
    rig.store({ ...outbound, ...change }, costMicros)
  // North loses, south earns, ours is the tenant's, one is in euro, one has no price.
  await storeCall({ carrier: 'north', ...bought(300_000) }, 100_000)
  await storeCall({ carrier: 'north', ...bought(50_000), startedAt: startedAt + day }, 100_000)
  await storeCall({ carrier: 'south', calledNumber: '4420', ...bought(10_000) }, 500_000)
  await storeCall(
    { carrier: 'ours', tenantId: acme, ...bought(70_000, { tenantId: acme }) },
    90_000,
  )
  await storeCall({ carrier: 'north', tenantId: acme, ...bought(20_000) }, 80_000)
  await storeCall({ carrier: 'far', ...bought(40_000, { currency: 'EUR' }) }, 60_000)
  await storeCall({ carrier: 'bare' }, 30_000)
  // They were not bought: one came in, one was not answered.
  await rig.store({ carrier: 'north' }, 10_000)
  await storeCall({ carrier: 'north', disposition: 'BUSY', billsec: 0 }, 0)
  const get = async (token: string, query: string) =>
    rig.request(`${path}?${period}&${query}`, { token })
  return { ...rig, acme, root, ofAcme, get }
}

interface Groups {
  readonly groups: readonly Readonly<Record<string, unknown>>[]
}

const brief = ({ groups }: Groups) =>
  groups.map(({ group, revenue, carrier_cost, margin, losses }) => [
    group,
    revenue,
    carrier_cost,
    margin,
    losses,
  ])

const byCarrier = [
  ['north', '0.28', '0.37', '-0.09', 1],
  ['far', '0.06', '0.04', null, 0],
  ['bare', '0.03', '0.00', null, 0],
  ['ours', '0.09', '0.07', '0.02', 0],
  ['south', '0.50', '0.01', '0.49', 0],
]

const asked = {
  tenantId: null,
  isOwn: false,
  from: answeredCall.startedAt - (answeredCall.startedAt % day),
  before: answeredCall.startedAt - (answeredCall.startedAt % day) + 2 * day,
  limit: 20,
  offset: 0,
}

test('losses come first, currencies are never added, and sums and records say the same', async () => {
  const rig = await open()
  expect(brief((await rig.get(rig.root, 'group_by=carrier')).data<Groups>())).toEqual(byCarrier)
  const place = placeOf(rig.database)
  const reports = async () => {
    const found = []
    for (const groupBy of marginGroupings)
      for (const tenant of [{}, { tenantId: rig.acme }, { tenantId: rig.acme, isOwn: true }])
        found.push(await resultOf(margins(place, { ...asked, ...tenant, groupBy })))
    return found
  }
  const read = await reports()
  expect(await rollUpAt(place)).toBe(0)
  expect(await reports()).toEqual(read)
  const groupsOf = (groupBy: string) =>
    brief(read[3 * marginGroupings.findIndex((each) => each === groupBy)] ?? { groups: [] })
  expect(groupsOf('carrier')).toEqual(byCarrier)
  expect(groupsOf('destination').at(-1)).toEqual(['4420', '0.50', '0.01', '0.49', 0])
  expect(groupsOf('day')).toContainEqual(['2026-01-02', '0.10', '0.05', '0.05', 0])
})

test('totals are apart for each pair of currencies', async () => {
  const { get, root } = await open()
  const { totals } = (await get(root, 'group_by=day&limit=1')).data<{ totals: unknown[] }>()
  expect(totals).toMatchObject([
    { currency: 'USD', carrier_currency: 'EUR', revenue: '0.06', margin: null },
    { currency: 'USD', carrier_currency: null, calls: 1, margin: null },
    { currency: 'USD', carrier_currency: 'USD', calls: 5, revenue: '0.87', margin: '0.42' },
  ])
})

test('a tenant has the calls by its own carriers alone', async () => {
  const rig = await open()
  const own = (await rig.get(rig.ofAcme, 'group_by=carrier')).data<Groups>()
  expect(brief(own)).toEqual([['ours', '0.09', '0.07', '0.02', 0]])
  const ofTenant = (await rig.get(rig.root, 'group_by=carrier&tenant=acme')).data<Groups>()
  expect(brief(ofTenant).map(([group]) => group)).toEqual(['ours', 'north'])
})

test('CSV has all groups, a tool has the same as the report, and a long period is refused', async () => {
  const rig = await open()
  const csv = (await rig.get(rig.root, 'group_by=carrier&limit=1&format=csv')).text
  expect(csv.split('\r\n').slice(0, 2)).toEqual([
    'group,name,calls,billsec,losses,currency,revenue,carrier_currency,carrier_cost,margin,margin_percent',
    'north,,3,33,1,USD,0.28,USD,0.37,-0.09,-32.1',
  ])
  expect(csv.split('\r\n')).toHaveLength(7)
  const body = { start: '2026-01-01', end: '2026-01-03', group_by: 'carrier' }
  const tool = await rig.request('/api/v1/mcp/tools/summarize_margins', { token: rig.root, body })
  expect(tool.text).toContain('"margin":"-0.09"')
  const long = 'start_date=2025-01-01T00:00:00Z&end_date=2026-01-01T00:00:00Z'
  const refused = await rig.request(`${path}?${long}&group_by=day`, { token: rig.root })
  expect(refused.status).toBe(400)
})

/** A call each half an hour of the days on which the clocks of Europe change, and around them. */
async function openChanges() {
  const rig = await openReportRig()
  const token = await rig.key()
  const starts = ['2026-03-28', '2026-03-29', '2026-10-25', '2026-10-26'].flatMap((date) =>
    Array.from({ length: 48 }, (_, half) => Date.parse(date) + half * 1_800_000),
  )
  for (const [index, startedAt] of starts.entries())
    await rig.store(
      {
        direction: 'outbound',
        carrier: index % 3 === 0 ? 'north' : 'south',
        startedAt,
        ...bought(1_000 + index),
      },
      2_000,
    )
  const ask = (query: string) => rig.request(`${path}?${query}`, { token })
  return { ...rig, starts, ask }
}

test('days of a zone are those of its clocks, also when these change', async () => {
  const { ask, starts } = await openChanges()
  for (const zone of ['Europe/Berlin', 'Asia/Kolkata', 'America/New_York']) {
    const clock = new Intl.DateTimeFormat('sv-SE', { timeZone: zone, dateStyle: 'short' })
    const expected = new Map<string, number>()
    for (const at of starts)
      expected.set(clock.format(at), (expected.get(clock.format(at)) ?? 0) + 1)
    const found = new Map<string, number>()
    for (const period of [
      'start_date=2026-03-27T12:00:00Z&end_date=2026-03-31T12:00:00Z',
      'start_date=2026-10-24T12:00:00Z&end_date=2026-10-27T12:00:00Z',
    ]) {
      const { groups } = (await ask(`${period}&group_by=day&time_zone=${zone}`)).data<Groups>()
      for (const { group, calls } of groups) found.set(String(group), Number(calls))
    }
    expect({ zone, days: Object.fromEntries(found) }).toEqual({
      zone,
      days: Object.fromEntries(expected),
    })
  }
  // The day has 23 hours, and begins at 23:00 UTC.
  const day = 'start_date=2026-03-29T10:00:00Z&end_date=2026-03-29T11:00:00Z&group_by=carrier'
  const report = (await ask(`${day}&time_zone=europe/berlin`)).data<Groups & { start: string }>()
  expect(report).toMatchObject({
    start: '2026-03-28T23:00:00.000Z',
    end: '2026-03-29T22:00:00.000Z',
    complete: true,
  })
  expect(report.groups.reduce((sum, { calls }) => sum + Number(calls), 0)).toBe(46)
})

test('a zone without an offset has the same report as UTC, of records and of sums', async () => {
  const { ask, database } = await openChanges()
  const asked = { ...period2026, tenantId: null, isOwn: false, limit: 200, offset: 0 }
  const place = placeOf(database)
  for (const round of ['records', 'sums']) {
    for (const groupBy of marginGroupings)
      expect(
        await resultOf(margins(place, { ...asked, groupBy, zone: 'Africa/Abidjan' })),
        `${groupBy} of ${round}`,
      ).toEqual({
        ...(await resultOf(margins(place, { ...asked, groupBy }))),
        time_zone: 'Africa/Abidjan',
      })
    await rollUpAt(place)
  }
  const utc = 'start_date=2026-03-28T00:00:00Z&end_date=2026-03-30T00:00:00Z&group_by=day'
  expect((await ask(`${utc}&time_zone=UTC`)).text).toBe((await ask(utc)).text)
})

const period2026 = { from: Date.parse('2026-03-28'), before: Date.parse('2026-03-31') }

test('a zone that is none, and a period with too many calls, are refused with advice', async () => {
  const { ask, database } = await openChanges()
  const wrong = await ask('start_date=2026-03-28&end_date=2026-03-30&group_by=day&time_zone=Mars')
  expect(wrong.status).toBe(400)
  expect(wrong.text).toContain('IANA')
  const within = (most: number, time_zone?: string, tenantId: number | null = null) =>
    marginsWithin(database, { most, tenantId, time_zone })
  expect(await within(96, 'Africa/Abidjan')).toMatchObject({ time_zone: 'Africa/Abidjan' })
  await expect(within(95, 'Africa/Abidjan')).rejects.toMatchObject({
    status: 400,
    details: [{ path: 'end_date', message: expect.stringContaining('2026-03-29T23:30:00') }],
  })
  expect(await within(95)).toMatchObject({ time_zone: 'UTC' })
})

/** The margins of three days by day, where a zone may have so many calls. */
const marginsWithin = (
  store: Store,
  {
    most,
    tenantId,
    time_zone,
  }: { most: number; tenantId: number | null; time_zone?: string | undefined },
) =>
  askMargins(
    { ...period2026, group_by: 'day', time_zone, limit: 20 },
    { store, most, reports: { margins: (request) => resultOf(margins(placeOf(store), request)) } },
    { tenantId, actor: 'a test', now: 0 },
  )

test('a tenant has days of its own zone, but UTC where these would be refused', async () => {
  const { database, tenant } = await openChanges()
  expect(await tenant('acme')).toBe(1)
  await runSql(database, "UPDATE tenant SET time_zone = 'Asia/Tokyo'")
  await runSql(database, 'UPDATE cdr SET tenant_id = 1')
  const of = (most: number, time_zone?: string) =>
    marginsWithin(database, { most, tenantId: 1, time_zone })
  expect(await of(1_000)).toMatchObject({
    time_zone: 'Asia/Tokyo',
    start: '2026-03-27T15:00:00.000Z',
  })
  expect(await of(1_000, 'UTC')).toMatchObject({ time_zone: 'UTC' })
  expect(await of(10)).toMatchObject({ time_zone: 'UTC', start: '2026-03-28T00:00:00.000Z' })
  expect(await marginsWithin(database, { most: 1_000, tenantId: null })).toMatchObject({
    time_zone: 'UTC',
  })
})

test('a tenant has its own calls by its own carriers in a zone, too', async () => {
  const rig = await open()
  const zone = 'group_by=carrier&time_zone=Europe/Berlin'
  expect(brief((await rig.get(rig.ofAcme, zone)).data<Groups>())).toEqual([
    ['ours', '0.09', '0.07', '0.02', 0],
  ])
  expect(brief((await rig.get(rig.root, zone)).data<Groups>())).toEqual(byCarrier)
})
