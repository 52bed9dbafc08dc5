/** Dates and days of reports by the clock of the customer, of the tenant, or of who asks. */
import { expect, test } from 'vitest'
import { openReportRig } from '../../support/report-rig.ts'
import { runSql } from '../../support/stored.ts'

const hour = 3_600_000

/**
 * A call each hour of 24 to 26 October 2026 UTC: in Berlin the 25th has 25 hours. The tenant is in
 * Tokyo, its customer 1 in Adelaide; customer 2 names no zone, customer 3 is of the platform.
 */
async function open() {
  const rig = await openReportRig()
  const acme = await rig.tenant('acme')
  await rig.tenant('other')
  await runSql(rig.database, "UPDATE tenant SET time_zone = 'Asia/Tokyo' WHERE slug = 'acme'")
  const root = await rig.key({ scopes: ['*'] })
  const keyOf = (slug: string) =>
    rig.key({ name: slug, tenant_scope: 'tenant', tenant_slug: slug, scopes: ['cdrs:read'] })
  const post = (body: object) =>
    rig.request('/api/v1/customers', { token: root, body: { rate_plan: null, ...body } })
  for (const body of [
    { name: 'one', tenant: 'acme', time_zone: 'Australia/Adelaide' },
    { name: 'two', tenant: 'acme' },
    { name: 'three', time_zone: 'America/New_York' },
  ])
    expect((await post(body)).status).toBe(201)
  const first = Date.parse('2026-10-24T00:00:00Z')
  for (let index = 0; index < 72; index += 1)
    await rig.store({
      direction: 'outbound',
      carrier: 'north',
      tenantId: acme,
      customerId: 1,
      startedAt: first + index * hour,
    })
  const get = async (query: string, token = root) =>
    rig.request(`/api/v1/reports/${query}`, { token })
  return { ...rig, root, ofAcme: await keyOf('acme'), ofOther: await keyOf('other'), get }
}

interface Counted {
  readonly time_zone: string
  readonly start: string
  readonly groups: readonly { group: string; calls: number }[]
}

const day = 'start_date=2026-10-25&end_date=2026-10-26'

test('a date is a day by the clock that is asked for, in each report', async () => {
  const { get } = await open()
  const zone = `${day}&time_zone=europe/berlin`
  const calls = (await get(`calls?${zone}&group_by=day`)).data<Counted>()
  expect(calls).toMatchObject({
    time_zone: 'Europe/Berlin',
    start: '2026-10-24T22:00:00.000Z',
    end: '2026-10-25T23:00:00.000Z',
    groups: [{ group: '2026-10-25', calls: 25 }],
  })
  const [north] = (await get(`carriers?${zone}`)).data<readonly { outbound: { calls: number } }[]>()
  expect(north?.outbound.calls).toBe(25)
  expect((await get(`cdrs?${zone}`)).body).toMatchObject({ total_calls: 25 })
  const margins = (await get(`margins?${zone}&group_by=day`)).data<Counted>()
  expect(margins).toMatchObject({ groups: [{ group: '2026-10-25', calls: 25 }] })
  for (const report of ['calls', 'carriers', 'cdrs', 'margins']) {
    const wrong = await get(`${report}?${day}&group_by=day&time_zone=Mars/Olympus`)
    expect([report, wrong.status]).toEqual([report, 400])
    expect(wrong.text).toContain('IANA')
  }
})

test('hours begin by the clock of the zone; one that comes twice is two', async () => {
  const { get } = await open()
  const hoursOf = async (zone: string) =>
    (await get(`calls?${day}&group_by=hour&limit=200&time_zone=${zone}`)).data<Counted>().groups
  const berlin = await hoursOf('Europe/Berlin')
  expect(berlin).toHaveLength(25)
  const kolkata = (await hoursOf('Asia/Kolkata')).map(({ group }) => group).toSorted()
  expect([kolkata.length, kolkata[0]]).toEqual([24, '2026-10-24T18:30:00.000Z'])
})

test('without a zone it is that of the customer, then of the tenant, then UTC', async () => {
  const { get, root, ofAcme, ofOther } = await open()
  const zoneOf = async (more: string, token: string) => {
    const { time_zone, start } = (
      await get(`calls?${day}&group_by=carrier${more}`, token)
    ).data<Counted>()
    return [time_zone, start]
  }
  const utc = ['UTC', '2026-10-25T00:00:00.000Z']
  const tokyo = ['Asia/Tokyo', '2026-10-24T15:00:00.000Z']
  const adelaide = ['Australia/Adelaide', '2026-10-24T13:30:00.000Z']
  expect(await zoneOf('', root)).toEqual(utc)
  expect(await zoneOf('&customer=1', root)).toEqual(adelaide)
  expect(await zoneOf('&customer=two', root)).toEqual(tokyo)
  expect(await zoneOf('', ofAcme)).toEqual(tokyo)
  expect(await zoneOf('&customer=1', ofAcme)).toEqual(adelaide)
  expect(await zoneOf('&time_zone=UTC&customer=1', ofAcme)).toEqual(utc)
  // Nobody is told the zone of a customer of others.
  expect(await zoneOf('&customer=1', ofOther)).toEqual(utc)
  expect(await zoneOf('&customer=3', ofAcme)).toEqual(tokyo)
  const counted = async (more: string, token: string) =>
    (await get(`cdrs?start_date=2026-10-24&end_date=2026-10-25${more}`, token)).body
  // The first calls are at nine in Tokyo, and at half past ten in Adelaide.
  expect(await counted('', ofAcme)).toMatchObject({ total_calls: 15 })
  expect(await counted('&customer_id=1', ofAcme)).toMatchObject({ total_calls: 14 })
  expect(await counted('', root)).toMatchObject({ total_calls: 24 })
})

test('a moment with an offset means the same in each zone, and JSON stays in UTC', async () => {
  const { get } = await open()
  const exact = 'start_date=2026-10-25T00:30:00%2B00:00&end_date=2026-10-25T02:00:00Z'
  for (const zone of ['', '&time_zone=Asia/Tokyo']) {
    const { body } = await get(`cdrs?${exact}${zone}`)
    expect(body).toMatchObject({
      total_calls: 1,
      records: [{ start_stamp: '2026-10-25T01:00:00.000Z' }],
    })
  }
})

test('the times of a CSV have the offset of the zone that is asked for', async () => {
  const { get } = await open()
  const startsOf = async (more: string) => {
    const { text } = await get(`cdrs?format=csv&${more}`)
    const [head = '', ...lines] = text.trim().split('\r\n')
    const at = head.split(',').indexOf('start_stamp')
    return lines.map((line) => line.split(',')[at])
  }
  const night = 'start_date=2026-10-25T00:00:00Z&end_date=2026-10-25T02:00:00Z'
  expect(await startsOf(`${night}&time_zone=Europe/Berlin`)).toEqual([
    '2026-10-25T02:00:00.000+02:00',
    '2026-10-25T02:00:00.000+01:00',
  ])
  expect(await startsOf(`${night}&time_zone=America/St_Johns`)).toEqual([
    '2026-10-24T21:30:00.000-02:30',
    '2026-10-24T22:30:00.000-02:30',
  ])
  // A zone of the customer decides what a date is, and no more.
  expect((await startsOf(`${day}&customer_id=1`))[0]).toBe('2026-10-24T14:00:00.000Z')
})

test('as many days as a report may have are as many where clocks change', async () => {
  const { get } = await open()
  const days = (report: string, end: string) =>
    get(`${report}?start_date=2026-10-01&end_date=${end}&time_zone=Europe/Berlin&group_by=day`)
  expect(
    (await get('carriers?start_date=2026-10-01&end_date=2026-11-01&time_zone=Europe/Berlin'))
      .status,
  ).toBe(200)
  expect(
    (await get('carriers?start_date=2026-10-01&end_date=2026-11-02&time_zone=Europe/Berlin'))
      .status,
  ).toBe(400)
  for (const report of ['calls', 'margins']) {
    expect([report, (await days(report, '2027-01-09')).status]).toEqual([report, 200])
    expect([report, (await days(report, '2027-01-10')).status]).toEqual([report, 400])
  }
})

const quarter = 900_000

/** An hour of the clock of a zone, with the offset by which it is one: `2026-04-05 01 GMT+11`. */
const hourShown = (zone: string) => {
  const format = new Intl.DateTimeFormat('sv-SE', {
    ...{ timeZone: zone, timeZoneName: 'longOffset', hourCycle: 'h23' },
    ...{ year: 'numeric', month: '2-digit', day: '2-digit', hour: '2-digit' },
  })
  return (at: number): string => format.format(at)
}

const nextDay = (date: string): string =>
  new Date(Date.parse(date) + 24 * hour).toISOString().slice(0, 10)

test.each([
  ['Europe/Berlin', '2026-03-29', 23],
  ['Europe/Berlin', '2026-10-25', 25],
  ['America/New_York', '2026-11-01', 25],
  ['America/Havana', '2026-03-08', 23],
  ['Africa/Cairo', '2026-04-24', 23],
  ['Australia/Lord_Howe', '2026-10-04', 23.5],
  ['Australia/Lord_Howe', '2026-04-05', 24.5],
  ['Pacific/Chatham', '2026-04-05', 25],
  ['America/St_Johns', '2026-12-31', 24],
])(
  '%s on %s, of %s hours: hours add up to days, and each call is in one day',
  async (zone, date, hours) => {
    const { fill, request, key } = await openReportRig()
    const token = await key({ scopes: ['*'] })
    const get = async (path: string) => request(`/api/v1/reports/${path}`, { token })
    // A call each quarter of the days UTC around it.
    const from = Date.parse(date) - 48 * hour
    const count = (120 * hour) / quarter
    await fill(count, { from, stepMs: quarter, direction: 'outbound', carrier: 'north' })
    const show = hourShown(zone)
    const hoursOfDay = new Map<string, { first: number; calls: number }>()
    for (let at = from; at < from + count * quarter; at += quarter) {
      if (!show(at).startsWith(date)) continue
      const known = hoursOfDay.get(show(at)) ?? { first: at, calls: 0 }
      hoursOfDay.set(show(at), { ...known, calls: known.calls + 1 })
    }
    const query = (start: string) =>
      `start_date=${start}&end_date=${nextDay(start)}&time_zone=${zone}&limit=100`
    const byHour = (await get(`calls?${query(date)}&group_by=hour`)).data<Counted>()
    expect(
      new Map(
        byHour.groups
          .toSorted((a, b) => (a.group < b.group ? -1 : 1))
          .map(({ group, calls }) => [group, calls]),
      ),
    ).toEqual(
      new Map(
        [...hoursOfDay.values()].map(({ first, calls }) => [new Date(first).toISOString(), calls]),
      ),
    )
    const sums = [
      (await get(`calls?${query(date)}&group_by=day`)).data<Counted>().groups,
      (await get(`margins?${query(date)}&group_by=day`)).data<Counted>().groups,
    ]
    for (const groups of sums) expect(groups).toMatchObject([{ group: date, calls: hours * 4 }])
    // The day before, the day and the day after: no call is in two of them, and none in no day.
    const uuids: string[] = []
    const days = [
      new Date(Date.parse(date) - 24 * hour).toISOString().slice(0, 10),
      date,
      nextDay(date),
    ]
    for (const each of days) {
      const { records } = (await get(`cdrs?${query(each).replace('&limit=100', '')}`)).body as {
        records: { call_uuid: string }[]
      }
      uuids.push(...records.map(({ call_uuid }) => call_uuid))
    }
    const whole = `start_date=${days[0]}&end_date=${nextDay(nextDay(date))}&time_zone=${zone}`
    const { total_calls: total } = (await get(`cdrs?${whole}`)).body as { total_calls: number }
    expect([uuids.length, new Set(uuids).size]).toEqual([total, total])
    const inDays = (await get(`calls?${whole}&group_by=day`)).data<Counted>().groups
    expect(inDays.map(({ group }) => group).toSorted()).toEqual(days)
    expect(inDays.reduce((sum, { calls }) => sum + calls, 0)).toBe(total)
  },
)

test('months meet at the end of a year, and a zone that changes in a month moves no call out of both', async () => {
  const { fill, request, key, tenant, database } = await openReportRig()
  const token = await key({ scopes: ['*'] })
  const acme = await tenant('acme')
  const body = { name: 'one', tenant: 'acme', time_zone: 'Asia/Tokyo', rate_plan: null }
  expect((await request('/api/v1/customers', { token, body })).status).toBe(201)
  const from = Date.parse('2026-11-29T00:00:00Z')
  await fill(65 * 24, { from, stepMs: hour, tenantId: acme, customerId: 1 })
  const months = ['2026-12-01', '2027-01-01', '2027-02-01']
  const counted = async (path: string, more: string, name: string) =>
    ((await request(`/api/v1/${path}&${more}`, { token })).body as Record<string, number>)[name]
  const countOf = async (index: number) => {
    const period = `start_date=${months[index]}&end_date=${months[index + 1]}`
    const calls = await counted('reports/cdrs?customer_id=1', period, 'total_calls')
    const { totals } = (
      await request(`/api/v1/reports/calls?group_by=day&customer=1&limit=100&${period}`, { token })
    ).data<{ totals: { calls: number } }>()
    expect(totals.calls).toBe(calls)
    return calls
  }
  expect([await countOf(0), await countOf(1)]).toEqual([31 * 24, 31 * 24])
  for (const time_zone of ['America/St_Johns', 'Pacific/Kiritimati', null]) {
    const patched = { token, method: 'PATCH', body: { time_zone } }
    expect((await request('/api/v1/customers/1', patched)).status).toBe(200)
    expect([await countOf(0), await countOf(1)]).toEqual([31 * 24, 31 * 24])
  }
  // The tenant's zone is that of a customer without one.
  await runSql(database, "UPDATE tenant SET time_zone = 'Australia/Lord_Howe' WHERE slug = 'acme'")
  expect([await countOf(0), await countOf(1)]).toEqual([31 * 24, 31 * 24])
})
