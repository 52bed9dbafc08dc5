import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Rate } from '../../../schema/contracts/charging.ts'
import type { PricePeriod } from '../../../schema/rules/price-periods.ts'
import { RateDeck } from '../../../engine/charging/pricing/rate-table.ts'
import { PlanTimes } from '../../../engine/charging/pricing/plan-times.ts'
import { costMicros } from '../../../engine/charging/pricing/price.ts'
import {
  addCustomer,
  addPlan,
  customerWith,
  endedCall,
  ocsOn,
  openCall,
  openStore,
  question,
  start,
  topUp,
} from '../../support/books.ts'
import { ManualTime } from '../../support/manual-time.ts'
import { readRows, runSql } from '../../support/stored.ts'

/** The clock of tests begins on a Monday at 10:00 UTC, 11:00 in Berlin. */
const boundary = Date.parse('2026-01-05T11:00:00Z')

const peak = { name: 'peak', days: ['mon'], from: '12:00', to: '18:00' } as const

const perMinute = (price: number, more: object = {}) => ({
  prefix: '49',
  first_increment_seconds: 0,
  first_rate_per_minute_micros: price,
  rate_per_minute_micros: price,
  ...more,
})

/** 0.06 a minute, and 0.60 in the peak that begins at `boundary`. */
async function withPeak(
  priceChange: 'hold' | 'change',
  periods: readonly PricePeriod[] = [peak],
  rates = [perMinute(60_000), perMinute(600_000, { period: 'peak' })],
) {
  const store = await openStore()
  const planId = await addPlan(store, rates)
  await runSql(
    store,
    'UPDATE rate_plan SET periods = ?, price_change = ?, time_zone = ?',
    JSON.stringify(periods),
    priceChange,
    'Europe/Berlin',
  )
  const customerId = await addCustomer(store, { name: '+15550001', rate_plan_id: planId })
  const time = new ManualTime(boundary - 60_000)
  const books = await ocsOn(store, time)
  const ask = (callUuid: string, startedAt = boundary - 60_000) =>
    books.ocs.authorize({ ...question(callUuid), startedAt })
  const costs = () =>
    readRows(store, 'SELECT billsec, cost_micros, rate_prefix FROM cdr ORDER BY id')
  const reserved = () => books.ocs.balanceOf(customerId)?.reservedMicros
  return { ...books, planId, customerId, ask, costs, reserved }
}

/** Answered at `answeredAt` for so many seconds. */
const talked = (callUuid: string, answeredAt: number, billsec: number) =>
  endedCall(callUuid, billsec, {
    startedAt: boundary - 60_000,
    answeredAt,
    endedAt: answeredAt + billsec * 1_000,
  })

test.each([
  ['before the boundary', -1_000, 60_000],
  ['at the boundary', 0, 600_000],
  ['after it', 5_000, 600_000],
])('hold: a call that is answered %s has that price to its end', async (_, after, cost) => {
  const { ocs, customerId, ask, costs, passUntil } = await withPeak('hold')
  await topUp(ocs, customerId, 10_000_000)
  await ask('a')
  void ocs.answered(openCall('a', boundary + after, { customerId }))
  await passUntil(ocs.report(talked('a', boundary + after, 60)))
  expect(await costs()).toEqual([{ billsec: 60, cost_micros: cost, rate_prefix: '49' }])
})

test('a call that rings towards a dearer period is promised that price; the answer frees the rest', async () => {
  const { ocs, customerId, ask, reserved } = await withPeak('hold')
  await topUp(ocs, customerId, 600_000)
  expect(await ask('a')).toMatchObject({ grantedSeconds: 60 })
  expect(reserved()).toBe(600_000n)
  void ocs.answered(openCall('a', boundary - 1, { customerId }))
  expect(reserved()).toBe(60_000n)
})

test('change: increments that begin in the new period have its price, the running one is finished', async () => {
  const rates = [
    perMinute(60_000, { increment_seconds: 30, first_increment_seconds: 30 }),
    perMinute(600_000, { period: 'peak', increment_seconds: 1 }),
  ]
  const { ocs, customerId, ask, costs, passUntil, reserved } = await withPeak(
    'change',
    [peak],
    rates,
  )
  await topUp(ocs, customerId, 10_000_000)
  await ask('a')
  // 30 s and 30 s at 0.06; the third increment begins 60 s after the answer, in the peak.
  void ocs.answered(openCall('a', boundary - 45_000, { customerId }))
  expect(reserved()).toBe(60_000n)
  expect(await ocs.extend('a', 55)).toMatchObject({ grantedSeconds: 115 })
  expect(reserved()).toBe(60_000n + 550_000n)
  await passUntil(ocs.report(talked('a', boundary - 45_000, 65)))
  expect(await costs()).toMatchObject([{ billsec: 65, cost_micros: 60_000 + 50_000 }])
  expect(reserved()).toBe(0n)
})

test('change: a grant ends where the dearer price has used up the wallet', async () => {
  const { ocs, customerId, ask } = await withPeak('change')
  // 50 s at 0.001 and 15 s at 0.01.
  await topUp(ocs, customerId, 200_000)
  await ask('a', boundary - 400_000)
  void ocs.answered(openCall('a', boundary - 50_000, { customerId }))
  expect(await ocs.extend('a', 20)).toMatchObject({ grantedSeconds: 65 })
})

test('a call that goes on after a crash keeps its prices, whatever the plan has then', async () => {
  const { ocs, store, time, customerId, ask, costs } = await withPeak('change')
  await topUp(ocs, customerId, 10_000_000)
  await ask('a')
  void ocs.answered(openCall('a', boundary - 30_000, { customerId }), 'state')
  time.advance(100)
  await runSql(store, 'DELETE FROM rate')
  await runSql(store, "UPDATE rate_plan SET periods = NULL, price_change = 'hold'")
  const next = await ocsOn(store, new ManualTime(boundary))
  expect((await next.ocs.start()).saved).toMatchObject([{ callUuid: 'a' }])
  expect(next.ocs.resume('a')).toBe(true)
  await next.passUntil(next.ocs.report(talked('a', boundary - 30_000, 60)))
  expect(await costs()).toMatchObject([{ billsec: 60, cost_micros: 30_000 + 300_000 }])
  expect(await next.ocs.check()).toEqual([])
})

test('a node that asks over HTTP pays by the time of the answer that it reports', async () => {
  const { ocs, customerId, planId, costs, passUntil } = await withPeak('change')
  await topUp(ocs, customerId, 10_000_000)
  const startedAt = boundary - 60_000
  expect(planId).toBe(1)
  await ocs.authorizeForNode({ ...question('a'), startedAt })
  await passUntil(ocs.reportFromNode(talked('a', boundary - 30_000, 60), 'body'))
  expect(await costs()).toMatchObject([{ cost_micros: 30_000 + 300_000 }])
})

test('a period may price a longer prefix than the price of other times', async () => {
  const rates = [perMinute(60_000), perMinute(600_000, { prefix: '4930', period: 'peak' })]
  const { ocs, customerId, planId, ask, costs, passUntil } = await withPeak('hold', [peak], rates)
  await topUp(ocs, customerId, 10_000_000)
  expect(ocs.quote(planId, '4930123', 60, boundary)?.rate.tariff.prefix).toBe('4930')
  expect(ocs.quote(planId, '4930123', 60, boundary - 1)?.rate.tariff.prefix).toBe('49')
  await ask('a')
  void ocs.answered(openCall('a', boundary, { customerId }))
  await passUntil(ocs.report(talked('a', boundary, 60)))
  expect(await costs()).toEqual([{ billsec: 60, cost_micros: 600_000, rate_prefix: '4930' }])
})

test('loss protection compares with all that a call sells for, beyond the boundary, too', async () => {
  const { ocs, customerId } = await withPeak('change')
  const soldAt = (at: number) => {
    const asked = { calledNumber: '4930123', sent: [], routingNumber: undefined }
    const tariff = ocs.tariffOf(customerId, asked, at)
    return tariff && costMicros(tariff, 60)
  }
  expect(soldAt(boundary - 60_000)).toBe(60_000)
  expect(soldAt(boundary - 30_000)).toBe(30_000 + 300_000)
  expect(soldAt(boundary)).toBe(600_000)
})

test('a destination that is blocked in a period is refused in it, and a call that talks is not cut', async () => {
  const rates = [perMinute(60_000), perMinute(0, { period: 'peak', is_blocked: 1 })]
  const { ocs, customerId, ask, costs, passUntil } = await withPeak('change', [peak], rates)
  await topUp(ocs, customerId, 10_000_000)
  await ask('a')
  expect(await ask('b', boundary)).toMatchObject({ code: 'destination_blocked' })
  void ocs.answered(openCall('a', boundary - 30_000, { customerId }))
  await passUntil(ocs.report(talked('a', boundary - 30_000, 60)))
  expect(await costs()).toMatchObject([{ cost_micros: 60_000 }])
})

test('a tenant that moves to another zone moves the periods of its plans', async () => {
  const { ocs, store, planId } = await withPeak('hold')
  await runSql(store, "INSERT INTO tenant (slug, name, created_at) VALUES ('acme', 'Acme', 0)")
  await runSql(store, 'UPDATE rate_plan SET tenant_id = 1, time_zone = NULL')
  await ocs.reloadRates()
  const periodAt = (at: number) => ocs.quote(planId, '49', 60, at)?.rate.period
  expect([periodAt(boundary), periodAt(boundary + 3_600_000)]).toEqual([undefined, 'peak'])
  await runSql(store, "UPDATE tenant SET time_zone = 'Europe/Berlin'")
  await ocs.reloadTimes()
  expect([periodAt(boundary - 1), periodAt(boundary)]).toEqual([undefined, 'peak'])
})

test('a customer has its own clock where a plan of the same owner names none', async () => {
  const { ocs, store, customerId, planId, ask, costs, passUntil } = await withPeak('hold')
  await topUp(ocs, customerId, 10_000_000)
  const reload = async (change: string) => {
    await runSql(store, change)
    await ocs.reloadCustomers()
    await ocs.reloadRates()
  }
  const periodAt = (at: number) => ocs.quote(planId, '49', 60, at, customerId)?.rate.period
  // The plan's zone is named: in Berlin the peak has begun, in London it has not.
  await reload("UPDATE customer SET time_zone = 'Europe/London'")
  expect(periodAt(boundary)).toBe('peak')
  await reload('UPDATE rate_plan SET time_zone = NULL')
  expect(periodAt(boundary)).toBeUndefined()
  await reload("UPDATE customer SET time_zone = 'Europe/Berlin'")
  expect(periodAt(boundary)).toBe('peak')
  expect(ocs.quote(planId, '49', 60, boundary)?.rate.period).toBeUndefined()
  await ask('a')
  void ocs.answered(openCall('a', boundary, { customerId }))
  await passUntil(ocs.report(talked('a', boundary, 60)))
  expect(await costs()).toMatchObject([{ cost_micros: 600_000 }])
})

test('a tenant cannot move the periods of a plan of the platform by the zone of its customer', async () => {
  const { ocs, store, customerId, planId } = await withPeak('hold')
  await runSql(store, "INSERT INTO tenant (slug, name, created_at) VALUES ('acme', 'Acme', 0)")
  await runSql(store, "UPDATE customer SET tenant_id = 1, time_zone = 'Europe/Berlin'")
  await runSql(store, 'UPDATE rate_plan SET time_zone = NULL')
  await ocs.reload()
  const period = () => ocs.quote(planId, '49', 60, boundary, customerId)?.rate.period
  expect(period()).toBeUndefined()
  await runSql(store, 'UPDATE rate_plan SET tenant_id = 1')
  await ocs.reload()
  expect(period()).toBe('peak')
})

test('a plan without periods is priced at the start of a call, as ever', async () => {
  const { ocs, customerId, passUntil, store } = await customerWith(10_000_000)
  await ocs.authorize(question('a'))
  await runSql(store, 'UPDATE rate SET effective_to_at = ?', start + 1)
  await ocs.reloadRates()
  void ocs.answered(openCall('a', start + 2_000, { customerId }))
  await passUntil(ocs.report(endedCall('a', 60)))
  expect(await readRows(store, 'SELECT cost_micros FROM cdr')).toEqual([{ cost_micros: 600_000 }])
})

/** Nights in which the clocks of a zone are changed. */
const nights = [
  ['Europe/Berlin', '2026-03-28T20:00:00Z'],
  ['Europe/Berlin', '2026-10-24T20:00:00Z'],
  ['America/New_York', '2026-10-31T20:00:00Z'],
  ['Australia/Lord_Howe', '2026-04-04T10:00:00Z'],
] as const

const hours = fc.constantFrom('00:00', '01:30', '02:00', '02:15', '02:30', '03:00', '23:00')

test('over any night of the clocks a call costs what its increments cost by the clock on the wall', () => {
  const rate = (price: number, increment: number, period?: string): Rate => ({
    planId: 1,
    tariff: {
      prefix: '49',
      currency: 'USD',
      connectFeeMicros: 10_000,
      firstIncrementSeconds: increment,
      firstRatePerMinuteMicros: price,
      incrementSeconds: increment,
      ratePerMinuteMicros: price,
      decimals: 6,
    },
    isBlocked: false,
    effectiveFrom: null,
    effectiveTo: null,
    ...(period !== undefined && { period }),
  })
  fc.assert(
    fc.property(
      fc.constantFrom(...nights),
      hours,
      hours,
      fc.nat(6 * 3_600_000),
      fc.nat(5 * 3_600),
      fc.constantFrom(1, 30, 60),
      fc.constantFrom(1, 6, 60),
      ([zone, evening], from, to, ringing, seconds, increment, nightly) => {
        fc.pre(from !== to)
        const days = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] as const
        const periods = [{ name: 'night', days, from, to }]
        const deck = new RateDeck([rate(61_003, increment), rate(20_011, nightly, 'night')])
        deck.setTimes(
          new Map([[1, new PlanTimes({ zone, periods, holidays: [], priceChange: 'change' })]]),
        )
        const answeredAt = Date.parse(evening) + ringing
        const wall = new Intl.DateTimeFormat('sv-SE', { timeZone: zone, timeStyle: 'short' })
        const isNight = (at: number): boolean => {
          const now = wall.format(at)
          return from < to ? from <= now && now < to : now >= from || now < to
        }
        const priceAt = (second: number) =>
          isNight(answeredAt + second * 1_000) ? [20_011, nightly] : [61_003, increment]
        let sum = seconds === 0 ? 0n : 600_000n
        for (let at = 0; at < seconds;) {
          const [price = 0, step = 1] = priceAt(at)
          sum += BigInt(price) * BigInt(step)
          at += step
        }
        const tariff = deck.answeredRate(1, '4930', answeredAt)?.tariff
        expect(tariff && BigInt(costMicros(tariff, seconds))).toBe((sum + 59n) / 60n)
      },
    ),
    { numRuns: 60 },
  )
})
