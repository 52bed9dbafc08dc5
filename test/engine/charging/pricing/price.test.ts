import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  affordableSeconds,
  costMicros,
  MAX_COST_MICROS,
  quoteOf,
} from '../../../../engine/charging/pricing/price.ts'
import { goldenPlans, goldenPrices } from '../../../support/golden-prices.ts'
import type { Rate } from '../../../../schema/contracts/charging.ts'
import { roundings, type Tariff } from '../../../../schema/contracts/tariff.ts'

const golden: Tariff = {
  prefix: '49',
  currency: 'USD',
  connectFeeMicros: 400_000,
  firstIncrementSeconds: 60,
  firstRatePerMinuteMicros: 200_000,
  incrementSeconds: 1,
  ratePerMinuteMicros: 100_000,
  decimals: 4,
}

test.each([
  [0, 0],
  [1, 600_000],
  [20, 600_000],
  [60, 600_000],
  [85, 641_700],
  [120, 700_000],
  [3_600, 6_500_000],
])('the golden tariff: %i s cost %i micro-units', (seconds, micros) => {
  expect(costMicros(golden, seconds)).toBe(micros)
})

const tariffs: fc.Arbitrary<Tariff> = fc.record({
  prefix: fc.constant('49'),
  currency: fc.constant('USD'),
  connectFeeMicros: fc.oneof(fc.constant(0), fc.nat(2_000_000), fc.nat(1_000_000_000_000)),
  firstIncrementSeconds: fc.oneof(fc.constantFrom(0, 1, 6, 30, 60), fc.nat(86_400)),
  firstRatePerMinuteMicros: fc.oneof(fc.nat(3_000_000), fc.nat(1_000_000_000_000)),
  incrementSeconds: fc.oneof(fc.constantFrom(1, 6, 60), fc.integer({ min: 1, max: 86_400 })),
  ratePerMinuteMicros: fc.oneof(fc.constant(0), fc.nat(3_000_000), fc.nat(1_000_000_000_000)),
  decimals: fc.nat(6),
  rounding: fc.constantFrom(...roundings, undefined),
})

/** The same formula as one fraction of integers of unlimited size. */
function exactCost(tariff: Tariff, seconds: number): bigint {
  if (seconds === 0) return 0n
  const quantum = 10n ** BigInt(6 - tariff.decimals)
  return rounded(exactSixtieths(tariff, seconds), 60n * quantum, tariff.rounding) * quantum
}

/** The whole number beside the fraction that the rule chooses, by comparing the two distances. */
function rounded(dividend: bigint, divisor: bigint, rounding: Tariff['rounding']): bigint {
  const below = dividend / divisor
  const above = below * divisor === dividend ? below : below + 1n
  if (rounding === 'down') return below
  if (rounding === 'half_up')
    return dividend - below * divisor < above * divisor - dividend ? below : above
  return above
}

/**
 * Connect fee, first increment and further increments, in sixtieths of a micro-unit: nothing is
 * rounded.
 */
function exactSixtieths(tariff: Tariff, seconds: number): bigint {
  const first = BigInt(tariff.firstIncrementSeconds)
  const increment = BigInt(tariff.incrementSeconds)
  let charged = 0n
  const rest = BigInt(seconds) - first
  if (rest > 0n) charged = ((rest + increment - 1n) / increment) * increment
  return (
    60n * BigInt(tariff.connectFeeMicros) +
    first * BigInt(tariff.firstRatePerMinuteMicros) +
    charged * BigInt(tariff.ratePerMinuteMicros)
  )
}

const bySecond = (ratePerMinuteMicros: number, firstIncrementSeconds: number): Tariff => ({
  ...golden,
  connectFeeMicros: 0,
  firstIncrementSeconds,
  firstRatePerMinuteMicros: ratePerMinuteMicros,
  ratePerMinuteMicros,
})

test.each([
  [50_000, 60, 50_000],
  [20_000, 60, 20_000],
  [100_000, 60, 100_000],
  [10_000, 3_600, 600_000],
  [6_400_000, 7_200, 768_000_000],
])('%i micro-units a minute by the second: %i s cost %i, to the last decimal', (rate, s, cost) => {
  expect([costMicros(bySecond(rate, 1), s), costMicros(bySecond(rate, 0), s)]).toEqual([cost, cost])
})

test('a whole number of minutes by the second costs that many times the minute', () => {
  fc.assert(
    fc.property(
      fc.nat(3_000_000),
      fc.constantFrom(0, 1, 6, 30, 60),
      fc.nat(600),
      (rate, first, n) => {
        const tariff = { ...bySecond(rate, first), incrementSeconds: 1, decimals: 6 }
        expect(costMicros(tariff, 60 * (n + 1))).toBe(rate * (n + 1))
      },
    ),
  )
})

test('every price is that of exact arithmetic, up to the largest that a call may cost', () => {
  fc.assert(
    fc.property(tariffs, fc.oneof(fc.nat(200_000), fc.nat(31_536_000)), (tariff, seconds) => {
      const exact = exactCost(tariff, seconds)
      const most = BigInt(MAX_COST_MICROS)
      expect(BigInt(costMicros(tariff, seconds))).toBe(exact < most ? exact : most)
    }),
    { numRuns: 3_000 },
  )
})

test('a budget buys exactly as many seconds as it pays for, and not one more', () => {
  const budgets = fc.oneof(
    fc.nat(5_000_000),
    fc.nat(1_000_000_000_000),
    fc.nat(MAX_COST_MICROS - 1),
  )
  fc.assert(
    fc.property(tariffs, budgets, (tariff, budget) => {
      const seconds = affordableSeconds(tariff, budget)
      if (seconds === Infinity) {
        expect(costMicros(tariff, 10_000_000)).toBeLessThanOrEqual(budget)
        return
      }
      // No call lasts a million years.
      fc.pre(seconds < 31_536_000_000_000)
      expect(costMicros(tariff, seconds)).toBeLessThanOrEqual(budget)
      expect(costMicros(tariff, seconds + 1)).toBeGreaterThan(budget)
    }),
    { numRuns: 5_000 },
  )
})

/**
 * Durations by several plans, at decimals that differ, with each of the three roundings. The table
 * was computed by rational arithmetic outside of this program.
 */
test.each(goldenPrices)('$plan, $decimals decimals: $seconds s cost $prices', (price) => {
  const { plan, decimals, seconds, prices } = price
  const tariff = { ...goldenPlans[plan], prefix: '49', currency: 'EUR', decimals }
  expect(roundings.map((rounding) => costMicros({ ...tariff, rounding }, seconds))).toEqual(prices)
  expect(costMicros(tariff, seconds)).toBe(prices[0])
  for (const [index, rounding] of roundings.entries()) {
    const sum = exactSixtieths({ ...tariff, rounding }, seconds)
    const quantum = 10n ** BigInt(6 - decimals)
    expect(BigInt(prices[index] ?? -1)).toBe(rounded(sum, 60n * quantum, rounding) * quantum)
  }
})

test('a longer call never costs less, so what is reserved covers what is charged', () => {
  fc.assert(
    fc.property(tariffs, fc.nat(200_000), fc.nat(10_000), (tariff, seconds, more) => {
      expect(costMicros(tariff, seconds + more)).toBeGreaterThanOrEqual(costMicros(tariff, seconds))
    }),
    { numRuns: 2_000 },
  )
})

test('a debt buys nothing, not even where talk is free', () => {
  const free = {
    ...golden,
    connectFeeMicros: 0,
    firstRatePerMinuteMicros: 0,
    ratePerMinuteMicros: 0,
  }
  expect(affordableSeconds(free, 0)).toBe(Infinity)
  expect(affordableSeconds(free, -1)).toBe(0)
})

test('the parts of a price add up to it, and none is a micro-unit off', () => {
  fc.assert(
    fc.property(tariffs, fc.integer({ min: 1, max: 200_000 }), (tariff, seconds) => {
      const rate: Rate = {
        planId: 1,
        tariff,
        isBlocked: false,
        effectiveFrom: null,
        effectiveTo: null,
      }
      const { parts = [], costMicros: cost = -1 } = quoteOf(rate, seconds) ?? {}
      fc.pre(cost < MAX_COST_MICROS)
      const sum = parts.reduce((total, { amountMicros }) => total + BigInt(amountMicros), 0n)
      const quantum = 10n ** BigInt(6 - tariff.decimals)
      expect(rounded(sum, quantum, tariff.rounding) * quantum).toBe(BigInt(cost))
      const exact = [
        60n * BigInt(tariff.connectFeeMicros),
        BigInt(tariff.firstIncrementSeconds) * BigInt(tariff.firstRatePerMinuteMicros),
        exactSixtieths(tariff, seconds) - exactSixtieths(tariff, 0),
      ]
      parts.forEach(({ amountMicros }, index) => {
        const off = 60n * BigInt(amountMicros) - (exact[index] ?? 0n)
        expect(off > -60n && off < 60n).toBe(true)
      })
    }),
    { numRuns: 2_000 },
  )
})
