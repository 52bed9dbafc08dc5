/** Past calls of plans with periods are priced anew as they would have been at their time. */
import { expect, test } from 'vitest'
import { openReratingRig } from '../../../support/rerating-rig.ts'
import { seededRandom } from '../../../support/seeded-random.ts'

/** Nights in which clocks are set back, and one in which they are not. */
const nights = ['2025-10-25T17:00:00Z', '2025-11-01T22:00:00Z', '2025-12-24T17:00:00Z'] as const
/** Since then another standard price is in force. */
const dearerFrom = Date.parse('2025-11-02T01:00:00Z')

const everyDay = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] as const

interface Terms {
  readonly time_zone: string
  readonly price_change: 'hold' | 'change'
  readonly rounding: 'up' | 'half_up' | 'down'
  readonly decimals: number
}

interface Call {
  readonly startedAt: number
  readonly answeredAt: number
  readonly seconds: number
}

interface Price {
  readonly minute: bigint
  readonly first: number
  readonly increment: number
}

const old = { minute: 61_003n, first: 30, increment: 6 }
const dearer = { minute: 97_001n, first: 30, increment: 6 }
const night = { minute: 20_011n, first: 1, increment: 60 }
const connectFee = 10_001n

/** Counts the increments one by one, on the clock of the zone: exact, and rounded once. */
function expectedMicros(call: Call, terms: Terms, kind: 'sold' | 'bought'): number {
  const wall = new Intl.DateTimeFormat('sv-SE', { timeZone: terms.time_zone, timeStyle: 'short' })
  const { startedAt, answeredAt, seconds } = call
  const standard = (kind === 'sold' ? startedAt : answeredAt) < dearerFrom ? old : dearer
  const priceAt = (second: number): Price => {
    const now = wall.format(answeredAt + (terms.price_change === 'change' ? second : 0) * 1_000)
    return now >= '20:00' || now < '06:30' ? night : standard
  }
  const { minute, first } = priceAt(0)
  let sixtieths = 60n * connectFee + BigInt(first) * minute
  for (let at = first; at < seconds;) {
    const { minute: later, increment } = priceAt(at)
    sixtieths += later * BigInt(increment)
    at += increment
  }
  const divisor = 60n * 10n ** BigInt(6 - terms.decimals)
  const added = { up: divisor - 1n, half_up: divisor / 2n, down: 0n }[terms.rounding]
  return Number(((sixtieths + added) / divisor) * (divisor / 60n))
}

const roundings = ['up', 'half_up', 'down'] as const

const allTerms: readonly Terms[] = ['Europe/Berlin', 'America/New_York'].flatMap((time_zone) =>
  (['hold', 'change'] as const).flatMap((price_change, index) =>
    roundings.map((rounding, at) => ({
      time_zone,
      price_change,
      rounding,
      decimals: 4 + ((at + index) % 3),
    })),
  ),
)

test('each call gets the price of its periods, by zone, change and rounding of the plan', async () => {
  const rig = await openReratingRig()
  const random = seededRandom(Number(process.env['SEED'] ?? 1))
  const below = (limit: number): number => Math.floor(random() * limit)
  const calls: Call[] = []
  for (const evening of nights)
    for (let count = 0; count < 50; count += 1) {
      const startedAt = Date.parse(evening) + below(14 * 3_600_000)
      const answeredAt = startedAt + below(count % 2 === 0 ? 30_000 : 1_800_000)
      calls.push({ startedAt, answeredAt, seconds: 1 + below(4 * 3_600) })
    }
  calls.sort((one, other) => one.startedAt - other.startedAt)
  for (const { startedAt, answeredAt, seconds } of calls)
    await rig.talk({ startedAt, answeredAt }, seconds, 100)
  for (const rate_plan of ['retail', 'cost'])
    for (const rate of [
      { prefix: '4930', rate_per_minute: '0.061003', first_increment: 30, increment: 6 },
      {
        prefix: '4930',
        rate_per_minute: '0.097001',
        first_increment: 30,
        increment: 6,
        effective_from: '2025-11-02T01:00:00Z',
      },
    ])
      expect(
        await rig.call('POST', '/rates', { rate_plan, connect_fee: '0.010001', ...rate }),
      ).toMatchObject({ status: 201 })
  const hours = { name: 'night', days: [...everyDay], from: '20:00', to: '06:30' }
  for (const plan of [1, 2]) await rig.call('PATCH', `/rate-plans/${plan}`, { periods: [hours] })
  for (const rate_plan of ['retail', 'cost'])
    expect(
      await rig.call('POST', '/rates', {
        rate_plan,
        prefix: '4930',
        period: 'night',
        connect_fee: '0.010001',
        rate_per_minute: '0.020011',
        first_increment: 1,
        increment: 60,
      }),
    ).toMatchObject({ status: 201 })
  for (const terms of allTerms) {
    for (const plan of [1, 2])
      expect((await rig.call('PATCH', `/rate-plans/${plan}`, terms)).status).toBe(200)
    const period = { from: '2025-10-01T00:00:00Z' }
    expect(await rig.rerate('sold', period)).toMatchObject({ calls: 150, without_rate: 0 })
    expect(await rig.rerate('bought', period)).toMatchObject({ calls: 150, without_rate: 0 })
    const records = await rig.records()
    const pricesOf = (column: string) => records.map((row) => Number(row[column]))
    const expected = (kind: 'sold' | 'bought') =>
      calls.map((call) => expectedMicros(call, terms, kind))
    expect([terms, pricesOf('cost_micros')]).toEqual([terms, expected('sold')])
    expect([terms, pricesOf('carrier_cost_micros')]).toEqual([terms, expected('bought')])
  }
  for (const { balance, entries, memory } of await rig.money())
    expect([entries, memory]).toEqual([balance, balance])
})

test('prices of now are those of the rates of now, in the period that the call had', async () => {
  const rig = await openReratingRig()
  const hours = { name: 'night', days: [...everyDay], from: '20:00', to: '06:30' }
  await rig.call('PATCH', '/rate-plans/1', { periods: [hours] })
  const night49 = { rate_plan: 'retail', prefix: '49', period: 'night', rate_per_minute: '0.012' }
  await rig.call('POST', '/rates', night49)
  const evening = Date.parse('2026-01-01T19:59:30Z')
  // It rang over the boundary; the other one was over before.
  await rig.talk({ startedAt: evening, answeredAt: evening + 40_000 }, 60)
  await rig.talk({ startedAt: evening - 60_000, answeredAt: evening - 50_000 }, 60)
  for (const prices of ['at_call', 'now']) {
    await rig.rerate('sold', { prices })
    const costs = (await rig.records()).map((row) => Number(row['cost_micros']))
    expect([prices, ...costs]).toEqual([prices, 12_000, 60_000])
  }
})

test('a call that was sold has the period of its customer, where the plan names no zone', async () => {
  const rig = await openReratingRig()
  const hours = { name: 'night', days: [...everyDay], from: '20:00', to: '06:30' }
  for (const plan of [1, 2]) await rig.call('PATCH', `/rate-plans/${plan}`, { periods: [hours] })
  for (const rate_plan of ['retail', 'cost']) {
    const rate = { rate_plan, prefix: '49', period: 'night', rate_per_minute: '0.012' }
    await rig.call('POST', '/rates', rate)
  }
  const noon = Date.parse('2026-01-01T12:00:00Z')
  await rig.talk({ startedAt: noon, answeredAt: noon }, 60)
  const priceOf = async (kind: 'sold' | 'bought', column: string) => {
    await rig.rerate(kind, {})
    return Number((await rig.records())[0]?.[column])
  }
  const ofCarrier = await priceOf('bought', 'carrier_cost_micros')
  expect(await priceOf('sold', 'cost_micros')).toBe(60_000)
  for (const customer of [1, 2])
    await rig.call('PATCH', `/customers/${customer}`, { time_zone: 'Asia/Tokyo' })
  expect(await priceOf('sold', 'cost_micros')).toBe(12_000)
  expect(await priceOf('bought', 'carrier_cost_micros')).toBe(ofCarrier)
})
