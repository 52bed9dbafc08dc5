import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  affordableSeconds,
  costMicros,
  MAX_COST_MICROS,
  quoteOf,
} from '../../../../engine/charging/pricing/price.ts'
import { roundings, type Tariff } from '../../../../schema/contracts/tariff.ts'

const prices = fc.oneof(fc.constant(0), fc.nat(3_000_000), fc.nat(1_000_000_000_000))
const increments = fc.oneof(fc.constantFrom(1, 6, 30, 60), fc.integer({ min: 1, max: 600 }))

const changes = fc
  .uniqueArray(
    fc.record({
      afterSeconds: fc.integer({ min: 1, max: 3_000 }),
      incrementSeconds: increments,
      ratePerMinuteMicros: prices,
    }),
    { selector: ({ afterSeconds }) => afterSeconds, minLength: 1, maxLength: 5 },
  )
  .map((all) => all.toSorted((one, other) => one.afterSeconds - other.afterSeconds))

const tariffs: fc.Arbitrary<Tariff> = fc.record({
  prefix: fc.constant('49'),
  currency: fc.constant('USD'),
  connectFeeMicros: fc.oneof(fc.constant(0), fc.nat(2_000_000)),
  firstIncrementSeconds: fc.oneof(fc.constantFrom(0, 1, 30, 60), fc.nat(1_000)),
  firstRatePerMinuteMicros: prices,
  incrementSeconds: increments,
  ratePerMinuteMicros: prices,
  decimals: fc.nat(6),
  rounding: fc.constantFrom(...roundings, undefined),
  changes,
})

/** Increment by increment, in sixtieths of a micro-unit, rounded once as a fraction. */
function stepped(tariff: Tariff, seconds: number): bigint {
  if (seconds === 0) return 0n
  let sum =
    60n * BigInt(tariff.connectFeeMicros) +
    BigInt(tariff.firstIncrementSeconds) * BigInt(tariff.firstRatePerMinuteMicros)
  for (let at = tariff.firstIncrementSeconds; at < seconds;) {
    const { incrementSeconds, ratePerMinuteMicros } =
      tariff.changes?.findLast(({ afterSeconds }) => afterSeconds <= at) ?? tariff
    sum += BigInt(incrementSeconds) * BigInt(ratePerMinuteMicros)
    at += incrementSeconds
  }
  const divisor = 60n * 10n ** BigInt(6 - tariff.decimals)
  const [below, rest] = [sum / divisor, sum % divisor]
  const { rounding = 'up' } = tariff
  const isUp = rounding === 'up' ? rest > 0n : rounding === 'half_up' && 2n * rest >= divisor
  const cost = ((below + (isUp ? 1n : 0n)) * divisor) / 60n
  return cost < BigInt(MAX_COST_MICROS) ? cost : BigInt(MAX_COST_MICROS)
}

test('a price that changes is the exact sum of the increments by the price at their begin, rounded once', () => {
  fc.assert(
    fc.property(tariffs, fc.nat(5_000), (tariff, seconds) => {
      expect(BigInt(costMicros(tariff, seconds))).toBe(stepped(tariff, seconds))
    }),
    { numRuns: 2_000 },
  )
})

test('what is affordable costs no more than the budget, and a second more would', () => {
  fc.assert(
    fc.property(
      tariffs,
      fc.oneof(fc.nat(5_000_000), fc.nat(MAX_COST_MICROS - 1)),
      (tariff, budget) => {
        const seconds = affordableSeconds(tariff, budget)
        if (seconds === Infinity) {
          expect(tariff.changes?.at(-1)?.ratePerMinuteMicros).toBe(0)
          expect(costMicros(tariff, 100_000)).toBeLessThanOrEqual(budget)
          return
        }
        // No call is longer; numbers are exact up to here.
        if (seconds > 1_000_000_000) return
        expect(costMicros(tariff, seconds)).toBeLessThanOrEqual(budget)
        expect(costMicros(tariff, seconds + 1)).toBeGreaterThan(budget)
      },
    ),
    { numRuns: 2_000 },
  )
})

test('the parts of a price that changes have its sum', () => {
  fc.assert(
    fc.property(tariffs, fc.integer({ min: 1, max: 5_000 }), (tariff, seconds) => {
      const rate = { planId: 1, tariff, isBlocked: false, effectiveFrom: null, effectiveTo: null }
      const quote = quoteOf(rate, seconds)
      const sum = quote?.parts.reduce((all, { amountMicros }) => all + amountMicros, 0) ?? 0
      const quantum = 10 ** (6 - tariff.decimals)
      expect(Math.abs((quote?.costMicros ?? 0) - sum)).toBeLessThan(quantum)
    }),
  )
})
