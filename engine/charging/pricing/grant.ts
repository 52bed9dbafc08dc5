/** How long a call may last for an amount: the exact inverse of the price. */
import type { Tariff } from '../../../schema/journal/call-journal.ts'
import { baseMicros, multiplyDivide, quantumMicros } from './price.ts'

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
