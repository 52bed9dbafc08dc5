/** How long a caller may talk for an amount: the exact inverse of the price. */
import type { Tariff } from '../../../schema/call-journal.ts'
import { baseMicros, multiplyDivide, quantumMicros } from './price.ts'

/** A grant covers at least this long, so that a call asks for more about once a minute. */
const grantSeconds = 60

/**
 * The most whole seconds whose price is within `budgetMicros`. 0: not even the first second;
 * Infinity: from there on the tariff charges nothing.
 */
export function affordableSeconds(tariff: Tariff, budgetMicros: number): number {
  const quantum = quantumMicros(tariff)
  // Prices are multiples of the quantum, so what lies above the last multiple buys nothing.
  const spendable = Math.floor(budgetMicros / quantum) * quantum - baseMicros(tariff)
  if (spendable < 0) return 0
  const perIncrement = tariff.incrementSeconds * tariff.ratePerMinuteMicros
  if (perIncrement === 0) return Infinity
  const increments = multiplyDivide(spendable, 60, perIncrement, 'down')
  return tariff.firstIncrementSeconds + increments * tariff.incrementSeconds
}

/** How much one grant asks for, in seconds: the first increment, but no less than a minute. */
export const grantLength = (tariff: Tariff): number =>
  Math.max(tariff.firstIncrementSeconds, grantSeconds)
