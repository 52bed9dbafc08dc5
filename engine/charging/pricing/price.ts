/** What a call costs, in integer micro-units. Exact: money uses no floating point. */
import { MAX_AMOUNT_UNITS } from '../../../schema/columns.ts'
import type { Tariff } from '../../../schema/journal/call-journal.ts'
import type { PricePart, Quote, Rate } from '../../../schema/contracts/charging.ts'

/** The most that a call can cost: up to here every price is exact, and grants end here. */
export const MAX_COST_MICROS = MAX_AMOUNT_UNITS * 1_000_000

/**
 * The price of `seconds` of talk: connect fee + first increment + each further increment begun. Each part is
 * rounded up to a micro-unit, the sum to the plan's decimals. 0 seconds cost nothing.
 *
 * @param seconds whole seconds from answer to end, 0 and up.
 */
export function costMicros(tariff: Tariff, seconds: number): number {
  if (seconds <= 0) return 0
  const price = roundUp(tariff, baseMicros(tariff) + furtherMicros(tariff, seconds))
  return Math.min(price, MAX_COST_MICROS)
}

/** The least price of an answered call, before rounding: connect fee and first increment. */
const baseMicros = (tariff: Tariff): number =>
  tariff.connectFeeMicros +
  multiplyDivide(tariff.firstIncrementSeconds, tariff.firstRatePerMinuteMicros, 60, 'up')

function furtherMicros(tariff: Tariff, seconds: number): number {
  if (seconds <= tariff.firstIncrementSeconds) return 0
  const increments = Math.ceil((seconds - tariff.firstIncrementSeconds) / tariff.incrementSeconds)
  return multiplyDivide(increments * tariff.incrementSeconds, tariff.ratePerMinuteMicros, 60, 'up')
}

/** The parts of a price before the last rounding; their seconds are those that are charged. */
function priceParts(tariff: Tariff, seconds: number): readonly PricePart[] {
  if (seconds <= 0) return []
  const { firstIncrementSeconds, incrementSeconds, connectFeeMicros } = tariff
  const increments = Math.max(0, Math.ceil((seconds - firstIncrementSeconds) / incrementSeconds))
  const amountMicros = baseMicros(tariff) - connectFeeMicros
  return [
    { part: 'connect_fee', seconds: 0, amountMicros: connectFeeMicros },
    { part: 'first_increment', seconds: firstIncrementSeconds, amountMicros },
    {
      part: 'further_increments',
      seconds: increments * incrementSeconds,
      amountMicros: furtherMicros(tariff, seconds),
    },
  ]
}

/** The smallest amount that the plan can charge: 100 micro-units for 4 decimals. */
const quantumMicros = (tariff: Tariff): number => 10 ** (6 - tariff.decimals)

function roundUp(tariff: Tariff, micros: number): number {
  const quantum = quantumMicros(tariff)
  const above = micros % quantum
  return above === 0 ? micros : micros - above + quantum
}

/**
 * `a × b ÷ c`, rounded to an integer. Products beyond 2^53 are computed as BigInt; a result beyond 2^53, more
 * than any call costs, is cut there.
 */
function multiplyDivide(a: number, b: number, c: number, rounding: 'up' | 'down'): number {
  const product = a * b
  if (product <= Number.MAX_SAFE_INTEGER) {
    const rest = product % c
    const whole = (product - rest) / c
    return rest > 0 && rounding === 'up' ? whole + 1 : whole
  }
  const divisor = BigInt(c)
  const exact = BigInt(a) * BigInt(b) + (rounding === 'up' ? divisor - 1n : 0n)
  return Math.min(Number(exact / divisor), Number.MAX_SAFE_INTEGER)
}

/** The shortest grant, so that a call asks for more about once a minute. */
const grantSeconds = 60

/**
 * The most whole seconds whose price is within `budgetMicros` (at most `MAX_COST_MICROS`). 0: not even the
 * first second; Infinity: the tariff charges nothing more.
 */
export function affordableSeconds(tariff: Tariff, budgetMicros: number): number {
  if (budgetMicros < 0) return 0
  const quantum = quantumMicros(tariff)
  // Prices are multiples of the quantum: the rest above the last multiple buys nothing.
  const spendable = budgetMicros - (budgetMicros % quantum) - baseMicros(tariff)
  if (spendable < 0) return 0
  const { incrementSeconds, ratePerMinuteMicros } = tariff
  if (ratePerMinuteMicros === 0) return Infinity
  return tariff.firstIncrementSeconds + incrementsFor(spendable, tariff) * incrementSeconds
}

function incrementsFor(micros: number, { incrementSeconds, ratePerMinuteMicros }: Tariff): number {
  const perIncrement = incrementSeconds * ratePerMinuteMicros
  if (Number.isSafeInteger(perIncrement)) return multiplyDivide(micros, 60, perIncrement, 'down')
  return Number((BigInt(micros) * 60n) / (BigInt(incrementSeconds) * BigInt(ratePerMinuteMicros)))
}

/** The length of one grant in seconds: the first increment, a minute at least. */
export const grantLength = (tariff: Tariff): number =>
  Math.max(tariff.firstIncrementSeconds, grantSeconds)

/** Undefined: there is no rate. */
export function quoteOf(rate: Rate | undefined, seconds: number): Quote | undefined {
  if (rate === undefined) return undefined
  const { tariff } = rate
  return { rate, costMicros: costMicros(tariff, seconds), parts: priceParts(tariff, seconds) }
}
