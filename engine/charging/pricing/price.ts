/** The cost of a call, in integer micro-units. Exact: money uses no floating point. */
import { MAX_AMOUNT_UNITS } from '../../../schema/columns.ts'
import type { Tariff, PricePart, Quote, Rate } from '../../../schema/contracts/charging.ts'
import { affordableWithChanges, furtherWithChanges } from './changing-price.ts'

/** The most that a call can cost: up to here every price is exact, and grants end here. */
export const MAX_COST_MICROS = MAX_AMOUNT_UNITS * 1_000_000

/**
 * The price of `seconds` of talk: connect fee + first increment + each further increment begun.
 * Their sum is exact, and is rounded once, to the plan's decimals. 0 seconds cost nothing.
 *
 * @param seconds whole seconds from answer to end, 0 and up.
 */
export function costMicros(tariff: Tariff, seconds: number): number {
  if (seconds <= 0) return 0
  if (tariff.changes !== undefined) return changingCost(tariff, seconds)
  const sixtieths = baseSixtieths(tariff) + furtherSixtieths(tariff, seconds)
  const quantum = quantumMicros(tariff)
  if (sixtieths > Number.MAX_SAFE_INTEGER) return largeCost(tariff, seconds, quantum)
  return Math.min(divided(sixtieths, 60 * quantum, tariff) * quantum, MAX_COST_MICROS)
}

/**
 * The least price of an answered call: connect fee and first increment. Prices are per minute and
 * seconds are charged, so sums are exact in sixtieths of a micro-unit. A sum beyond 2^53 is
 * inexact, and is computed again as BigInt.
 */
const baseSixtieths = (tariff: Tariff): number =>
  60 * tariff.connectFeeMicros + tariff.firstIncrementSeconds * tariff.firstRatePerMinuteMicros

const furtherSixtieths = (tariff: Tariff, seconds: number): number =>
  furtherSeconds(tariff, seconds) * tariff.ratePerMinuteMicros

/** The charged seconds after the first increment: those of every increment that has begun. */
function furtherSeconds(
  { firstIncrementSeconds, incrementSeconds }: Tariff,
  seconds: number,
): number {
  if (seconds <= firstIncrementSeconds) return 0
  return Math.ceil((seconds - firstIncrementSeconds) / incrementSeconds) * incrementSeconds
}

function largeCost(tariff: Tariff, seconds: number, quantum: number): number {
  const further = BigInt(furtherSeconds(tariff, seconds)) * BigInt(tariff.ratePerMinuteMicros)
  return roundedCost(tariff, further, quantum)
}

const changingCost = (tariff: Tariff, seconds: number): number =>
  roundedCost(tariff, furtherWithChanges(tariff, seconds).sixtieths, quantumMicros(tariff))

/** @param further sixtieths of a micro-unit of all increments after the first. */
function roundedCost(tariff: Tariff, further: bigint, quantum: number): number {
  const divisor = BigInt(60 * quantum)
  const price = (largeBase(tariff) + further + BigInt(added(tariff, 60 * quantum))) / divisor
  return Math.min(Number(price) * quantum, MAX_COST_MICROS)
}

const largeBase = (tariff: Tariff): bigint =>
  60n * BigInt(tariff.connectFeeMicros) +
  BigInt(tariff.firstIncrementSeconds) * BigInt(tariff.firstRatePerMinuteMicros)

/** Both are safe integers, and so is the result. */
function divided(dividend: number, divisor: number, tariff: Tariff): number {
  const rest = dividend % divisor
  return (dividend - rest) / divisor + (rest + added(tariff, divisor) >= divisor ? 1 : 0)
}

/** Returns what is added to a sum before the part that is less than the divisor is cut off. */
function added({ rounding }: Tariff, divisor: number): number {
  if (rounding === undefined || rounding === 'up') return divisor - 1
  return rounding === 'half_up' ? divisor / 2 : 0
}

/**
 * The parts of a price before it is rounded to the plan's decimals; their seconds are those that
 * are charged. A part may end within a micro-unit: what is rounded there is taken off the next one,
 * so their sum is that of the exact parts. A half is not rounded twice: parts of a price with fewer
 * decimals are cut off, so that their sum is on the same side of it.
 */
function priceParts(tariff: Tariff, seconds: number): readonly PricePart[] {
  if (seconds <= 0) return []
  const { firstIncrementSeconds } = tariff
  const connectFee = tariff.connectFeeMicros
  const isCut = tariff.rounding === 'half_up' && tariff.decimals < 6
  const micros: Tariff = {
    ...tariff,
    decimals: 6,
    rounding: isCut ? 'down' : tariff.rounding,
  }
  const base = firstIncrementSeconds === 0 ? connectFee : costMicros(micros, firstIncrementSeconds)
  const whole = costMicros(micros, seconds)
  const further =
    tariff.changes === undefined
      ? furtherSeconds(tariff, seconds)
      : furtherWithChanges(tariff, seconds).seconds
  return [
    { part: 'connect_fee', seconds: 0, amountMicros: connectFee },
    { part: 'first_increment', seconds: firstIncrementSeconds, amountMicros: base - connectFee },
    { part: 'further_increments', seconds: further, amountMicros: whole - base },
  ]
}

/** The smallest amount that the plan can charge: 100 micro-units for 4 decimals. */
const quantumMicros = (tariff: Tariff): number => 10 ** (6 - tariff.decimals)

/**
 * The most whole seconds whose price is within `budgetMicros` (at most `MAX_COST_MICROS`). 0: not
 * even the first second; Infinity: the tariff charges nothing more.
 */
export function affordableSeconds(tariff: Tariff, budgetMicros: number): number {
  if (budgetMicros < 0) return 0
  const quantum = quantumMicros(tariff)
  // Prices are multiples of the quantum: the rest above the last multiple buys nothing.
  const payableMicros = budgetMicros - (budgetMicros % quantum)
  // The largest sum that is rounded to what is payable is above it by what rounding takes away.
  const givenAway = 60 * quantum - 1 - added(tariff, 60 * quantum)
  if (tariff.changes !== undefined)
    return affordableWithChanges(
      tariff,
      60n * BigInt(payableMicros) + BigInt(givenAway) - largeBase(tariff),
    )
  const increments = affordableIncrements(tariff, payableMicros, givenAway)
  if (increments < 0) return 0
  if (tariff.ratePerMinuteMicros === 0) return Infinity
  return tariff.firstIncrementSeconds + increments * tariff.incrementSeconds
}

/**
 * How many increments `micros` buy after the base; below 0: not even the base.
 *
 * @param givenAway further sixtieths of a micro-unit that rounding does not charge.
 */
function affordableIncrements(tariff: Tariff, micros: number, givenAway: number): number {
  const { incrementSeconds, ratePerMinuteMicros } = tariff
  const [base, step] = [baseSixtieths(tariff), incrementSeconds * ratePerMinuteMicros]
  const budget = 60 * micros + givenAway
  if (Math.max(budget, base, step) > Number.MAX_SAFE_INTEGER) {
    const left = 60n * BigInt(micros) + BigInt(givenAway) - largeBase(tariff)
    if (left < 0n) return -1
    const largeStep = BigInt(incrementSeconds) * BigInt(ratePerMinuteMicros)
    return largeStep === 0n ? 0 : Number(left / largeStep)
  }
  const left = budget - base
  if (left < 0) return -1
  return step === 0 ? 0 : (left - (left % step)) / step
}

/** The shortest grant, so that a call asks for more about once a minute. */
const grantSeconds = 60

/** The length of one grant in seconds: the first increment, a minute at least. */
export const grantLength = ({
  firstIncrementSeconds,
}: Pick<Tariff, 'firstIncrementSeconds'>): number => Math.max(firstIncrementSeconds, grantSeconds)

/** Undefined: there is no rate. */
export function quoteOf(rate: Rate | undefined, seconds: number): Quote | undefined {
  if (rate === undefined) return undefined
  const { tariff } = rate
  return { rate, costMicros: costMicros(tariff, seconds), parts: priceParts(tariff, seconds) }
}
