import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  affordableSeconds,
  costMicros,
  MAX_COST_MICROS,
} from '../../../../engine/charging/pricing/price.ts'
import type { Tariff } from '../../../../schema/journal/call-journal.ts'

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
})

/** The same formula in whole numbers of unlimited size. */
function exactCost(tariff: Tariff, seconds: number): bigint {
  if (seconds === 0) return 0n
  const ceil = (a: bigint, b: bigint): bigint => (a + b - 1n) / b
  const first = BigInt(tariff.firstIncrementSeconds)
  const increment = BigInt(tariff.incrementSeconds)
  const rest = BigInt(seconds) - first
  const billed = rest > 0n ? ceil(rest, increment) * increment : 0n
  const sum =
    BigInt(tariff.connectFeeMicros) +
    ceil(first * BigInt(tariff.firstRatePerMinuteMicros), 60n) +
    ceil(billed * BigInt(tariff.ratePerMinuteMicros), 60n)
  const quantum = 10n ** BigInt(6 - tariff.decimals)
  return ceil(sum, quantum) * quantum
}

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
