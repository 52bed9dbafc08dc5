import { expect, test } from 'vitest'
import { openResources, type TestResources } from '../../support/resources.ts'

const offPeak = [
  { name: 'off-peak', days: ['mon', 'tue', 'wed', 'thu', 'fri'], from: '20:00', to: '08:00' },
  { name: 'off-peak', days: ['sat', 'sun', 'holiday'] },
]

const plan = { name: 'retail', time_zone: 'europe/berlin', periods: offPeak, holidays: ['12-25'] }

async function withPlan(terms: object = {}) {
  const control = await openResources()
  const created = await control.call('POST', '/rate-plans', { ...plan, ...terms })
  expect(created.status).toBe(201)
  const rate = (more: object) => control.call('POST', '/rates', { rate_plan: 'retail', ...more })
  return { ...control, created, rate }
}

const lookUp = async (control: Pick<TestResources, 'call'>, at: string, more = '') =>
  (await control.call('GET', `/rates/lookup?rate_plan=retail&number=4930${more}&at=${at}`)).data()

test('a plan says its zone, periods and holidays; what is left out is a whole day', async () => {
  const { created } = await withPlan()
  expect(created.data()).toMatchObject({
    time_zone: 'Europe/Berlin',
    periods: [offPeak[0], { ...offPeak[1], from: '00:00', to: '24:00' }],
    holidays: ['12-25'],
    price_change: 'hold',
  })
})

test.each([
  [{ time_zone: 'Mars/Olympus' }, 'time_zone'],
  [{ time_zone: '+01:00' }, 'time_zone'],
  [{ holidays: ['02-30'] }, 'holidays.0'],
  [{ holidays: ['2026-02-29'] }, 'holidays.0'],
  [{ holidays: ['12-25', '12-25'] }, 'holidays'],
  [{ holidays: Array.from({ length: 401 }, (_, n) => `${2000 + n}-01-01`) }, 'holidays'],
  [{ periods: [{ name: 'Peak', days: ['mon'] }] }, 'periods.0.name'],
  [{ periods: [{ name: 'peak ', days: ['mon'] }] }, 'periods.0.name'],
  [{ periods: [{ name: 'peak', days: [] }] }, 'periods.0.days'],
  [{ periods: [{ name: 'peak', days: ['mon', 'mon'] }] }, 'periods.0'],
  [{ periods: [{ name: 'peak', days: ['mon'], from: '24:00', to: '08:00' }] }, 'periods.0.from'],
  [{ periods: [{ name: 'peak', days: ['mon'], from: '08:00', to: '08:00' }] }, 'periods.0'],
  [{ periods: Array.from({ length: 9 }, (_, n) => ({ name: `p${n}`, days: ['mon'] })) }, 'periods'],
  [{ price_change: 'sometimes' }, 'price_change'],
])('%j is refused at %s', async (terms, path) => {
  const { call } = await openResources()
  const { status, body } = await call('POST', '/rate-plans', { ...plan, ...terms })
  expect(status).toBe(400)
  expect(body).toMatchObject({ details: [{ path }] })
})

test('29 February may be a holiday of each year', async () => {
  expect((await withPlan({ holidays: ['02-29'] })).created.data()).toMatchObject({
    holidays: ['02-29'],
  })
})

test('a look-up takes the price of the period that holds then, in the zone of the plan', async () => {
  const control = await withPlan()
  await control.rate({ prefix: '49', rate_per_minute: '0.10' })
  const twin = await control.rate({ prefix: '49', rate_per_minute: '0.04', period: 'off-peak' })
  expect(twin.status).toBe(201)
  expect(twin.data()).toMatchObject({ period: 'off-peak' })
  const again = await control.rate({ prefix: '49', rate_per_minute: '0.05', period: 'off-peak' })
  expect(again.status).toBe(409)
  const at = async (time: string) => {
    const { period, cost } = (await lookUp(control, time)) as { period: unknown; cost: unknown }
    return [period, cost]
  }
  expect(await at('2026-11-27T18:59:59Z')).toEqual([null, 0.1])
  expect(await at('2026-11-27T19:00:00Z')).toEqual(['off-peak', 0.04])
  expect(await at('2026-12-25T12:00:00Z')).toEqual(['off-peak', 0.04])
})

test('a look-up shows the prices that follow, where a plan changes them during a call', async () => {
  const control = await withPlan({ price_change: 'change' })
  await control.rate({ prefix: '49', rate_per_minute: '0.10' })
  await control.rate({ prefix: '49', rate_per_minute: '0.04', period: 'off-peak' })
  expect(await lookUp(control, '2026-11-27T18:59:30Z', '&duration=60')).toMatchObject({
    period: null,
    price_changes: expect.arrayContaining([
      { after_seconds: 30, period: 'off-peak', rate_per_minute_exact: '0.04', increment: 1 },
    ]),
    cost: 0.07,
  })
})

test('a rate names a period of its plan, and a plan keeps the periods of its rates', async () => {
  const control = await withPlan()
  const unknown = await control.rate({ prefix: '49', rate_per_minute: 1, period: 'night' })
  expect(unknown.body).toMatchObject({
    details: [{ path: 'period', message: expect.stringContaining('"off-peak"') }],
  })
  const { data } = await control.rate({ prefix: '49', rate_per_minute: 1, period: 'off-peak' })
  const { id } = data() as { id: number }
  const removed = await control.call('PATCH', '/rate-plans/1', { periods: [] })
  expect(removed).toMatchObject({ status: 409, body: { code: 'in_use' } })
  const freed = await control.call('PATCH', `/rates/${id}`, { period: null })
  expect(freed.data()).toMatchObject({ period: null })
  expect((await control.call('PATCH', '/rate-plans/1', { periods: [] })).status).toBe(200)
  const lost = await control.call('PATCH', `/rates/${id}`, { period: 'off-peak' })
  expect(lost.status).toBe(400)
})

test('null takes the zone and the periods away', async () => {
  const { call } = await withPlan()
  const patch = (body: object) => call('PATCH', '/rate-plans/1', body)
  expect((await patch({ time_zone: null })).data()).toMatchObject({ time_zone: null })
  expect((await patch({ periods: null })).data()).toMatchObject({ periods: [] })
})

test('a table has a column of periods; an unknown one is told by its line, and an export has it', async () => {
  const control = await withPlan()
  const send = (table: string) =>
    control.call('POST', '/rates/import?rate_plan=retail', table, {
      headers: { 'content-type': 'text/csv' },
    })
  const wrong = await send('prefix,rate_per_minute,period\n49,0.10,\n49,0.04,night\n')
  expect(wrong.body).toMatchObject({ details: [{ path: 'lines.3.period' }] })
  const right = await send('prefix,rate_per_minute,period\n49,0.10,\n49,0.04,off-peak\n')
  expect(right.data()).toMatchObject({ imported: 2, created: 2 })
  const again = await send('prefix,rate_per_minute,period\n49,0.03,off-peak\n')
  expect(again.data()).toMatchObject({ created: 0, updated: 1 })
  expect(await lookUp(control, '2026-11-28T12:00:00Z')).toMatchObject({ cost: 0.03 })
  expect(await lookUp(control, '2026-11-27T12:00:00Z')).toMatchObject({ cost: 0.1 })
  const exported = await control.call('GET', '/rates/export?rate_plan=retail')
  expect(exported.text).toContain('49,,0.03,0.00,0,0.03,1,false,off-peak,,')
})

const deck = (rows: readonly string[]) => ['Code,Rate,Time,From', ...rows, ''].join('\n')

const mapping = {
  columns: { prefix: 'Code', rate_per_minute: 'Rate', period: 'Time', effective_from: 'From' },
}

async function withDecks() {
  const control = await withPlan()
  const send = (step: '' | '/diff', rows: readonly string[], query: object = {}) => {
    const words = new URLSearchParams({
      rate_plan: 'retail',
      mapping: JSON.stringify(mapping),
      ...query,
    })
    return control.call('POST', `/rates/decks${step}?${words.toString()}`, deck(rows), {
      headers: { 'content-type': 'application/octet-stream' },
    })
  }
  const stored = async () =>
    (await control.call('GET', '/rates?rate_plan=retail&limit=200'))
      .data<{ prefix: string; period: string | null; rate_per_minute_exact: string }[]>()
      .map((rate) => [rate.prefix, rate.period, rate.rate_per_minute_exact])
  return { ...control, send, stored }
}

test('a deck prices periods; a diff tells them apart, and undoing it brings them back', async () => {
  const { call, send, stored } = await withDecks()
  await send('', ['49,0.10,,', '49,0.04,Off-Peak,', '44,0.20,,'])
  const before = [
    ['44', null, '0.20'],
    ['49', null, '0.10'],
    ['49', 'off-peak', '0.04'],
  ]
  expect(await stored()).toEqual(before)
  const rows = ['49,0.10,,', '49,0.06,off-peak,', '44,0.20,,', '44,0.15,off-peak,']
  const diff = await send('/diff', rows, { mode: 'replace' })
  expect(diff.data()).toMatchObject({
    rates: expect.arrayContaining([
      expect.objectContaining({ kind: 'new', prefix: '44', period: 'off-peak' }),
      expect.objectContaining({ kind: 'dearer', prefix: '49', period: 'off-peak' }),
    ]),
  })
  const imported = await send('', rows.slice(1), { mode: 'replace' })
  const { id } = imported.data<{ id: number }>()
  expect(await stored()).toEqual([
    ['44', null, '0.20'],
    ['44', 'off-peak', '0.15'],
    ['49', 'off-peak', '0.06'],
  ])
  expect((await call('POST', `/rates/decks/${id}/undo`)).status).toBe(200)
  expect(await stored()).toEqual(before)
})

test('a deck may not name a period that the plan does not have, nor one twice', async () => {
  const { send } = await withDecks()
  const wrong = await send('', ['49,0.10,night,', '44,0.1,off-peak,', '44,0.2,off-peak,'])
  expect(wrong.body).toMatchObject({
    details: [{ path: 'lines.2.period' }, { path: 'lines.4.prefix' }],
  })
})

test('a date of a deck without an offset is midnight in the zone of its plan', async () => {
  const { call, send } = await withDecks()
  const startOf = async () =>
    (await call('GET', '/rates?rate_plan=retail')).data<{ effective_from: string }[]>().at(-1)
      ?.effective_from
  await send('', ['49,0.10,,2026-12-01'])
  expect(await startOf()).toBe('2026-11-30T23:00:00.000Z')
  await send('', ['49,0.10,,2026-12-01T00:00:00Z'], { mode: 'replace' })
  expect(await startOf()).toBe('2026-12-01T00:00:00.000Z')
})

test('the start of a whole deck is midnight in the zone of its plan, or of its mapping', async () => {
  const { call, send } = await withDecks()
  const starts = async (more: object) => {
    await send('', ['49,0.10,,'], {
      mode: 'replace',
      mapping: JSON.stringify({ ...mapping, effective_from: '2026-12-01', ...more }),
    })
    const rates = await call('GET', '/rates?rate_plan=retail')
    return rates.data<{ effective_from: string }[]>().at(-1)?.effective_from
  }
  expect(await starts({})).toBe('2026-11-30T23:00:00.000Z')
  expect(await starts({ time_zone: 'utc' })).toBe('2026-12-01T00:00:00.000Z')
})

test('a look-up for a customer takes its plan and its clock; without rights nobody sets that', async () => {
  const control = await withPlan({ time_zone: null })
  await control.rate({ prefix: '49', rate_per_minute: '0.10' })
  await control.rate({ prefix: '49', rate_per_minute: '0.04', period: 'off-peak' })
  const made = await control.call('POST', '/customers', {
    name: 'Tokyo',
    rate_plan: 'retail',
    time_zone: 'asia/tokyo',
  })
  expect(made.data()).toMatchObject({ id: 1, time_zone: 'Asia/Tokyo' })
  const priceFor = async (who: string) =>
    (await control.call('GET', `/rates/lookup?${who}&number=4930&at=2026-11-27T12:00:00Z`)).data()
  // In Tokyo it is nine in the evening.
  expect(await priceFor('customer_id=1')).toMatchObject({ period: 'off-peak', rate_plan_id: 1 })
  expect(await priceFor('rate_plan=retail&customer_id=1')).toMatchObject({ period: 'off-peak' })
  expect(await priceFor('rate_plan=retail')).toMatchObject({ period: null })
  const unknown = await control.call('GET', '/rates/lookup?customer_id=2&number=4930')
  expect(unknown.body).toMatchObject({ details: [{ path: 'customer_id' }] })
  const scopes = ['customers:read', 'customers:write']
  const token = await control.key({ name: 'desk', scopes })
  const patch = (body: object) =>
    control.request('/api/v1/customers/1', { method: 'PATCH', token, body })
  expect(await patch({ time_zone: null })).toMatchObject({ status: 403 })
  expect((await patch({ email: 'a@tokyo.example' })).status).toBe(200)
  expect((await control.call('PATCH', '/customers/1', { time_zone: null })).data()).toMatchObject({
    time_zone: null,
  })
})
