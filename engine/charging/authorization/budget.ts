/** How long a call may last for what its payer has, for what is left of the day, and for what its caps leave it. Pure. */
import type { Tariff } from '../../../schema/journal/call-journal.ts'
import type { MoneyLack } from '../../../schema/call-record.ts'
import type { DenialCode } from '../../../schema/contracts/charging.ts'
import type { Customer } from '../customers/customer.ts'
import type { Meter } from '../guards/meter.ts'
import { affordableSeconds } from '../pricing/grant.ts'
import { costMicros, MAX_COST_MICROS } from '../pricing/price.ts'

/** A call that counts on no cap. */
export const noMeters: readonly Meter[] = []

/** How long a call may last within its caps, which count what it holds beyond `heldMicros`. */
export function leftWithin(
  meters: readonly Meter[],
  tariff: Tariff,
  heldMicros: number,
  leftOn: (meters: readonly Meter[]) => number,
): number {
  if (meters.length === 0) return Infinity
  return affordableSeconds(
    tariff,
    Math.min(heldMicros + Math.max(0, leftOn(meters)), MAX_COST_MICROS),
  )
}

/** On which the least is left. */
export const leastOf = (meters: readonly Meter[]): Meter | undefined =>
  meters.toSorted((a, b) => a.freeMicros - b.freeMicros)[0]

/** Whole seconds since the answer; the longest possible at once where more talk costs nothing more. */
export const grant = (affordable: number, target: number, maxSeconds: number): number =>
  affordable === Infinity ? maxSeconds : Math.min(affordable, target, maxSeconds)

/**
 * What this call may cost in all; `reservedMicros` of it is reserved for it already. A debt counts as an
 * empty wallet: a call that costs nothing is free for debtors too.
 */
export function budgetOf(
  payer: Customer,
  reservedMicros: number,
  funds: bigint,
  now: number,
): number {
  const today = payer.dailyBudgetMicros(now) ?? funds
  return budgetWith(reservedMicros, today < funds ? today : funds)
}

/** The most that one call may cost is exact as a number. */
function budgetWith(reservedMicros: number, availableMicros: bigint): number {
  const more = availableMicros > 0n ? Number(availableMicros) : 0
  return Math.min(reservedMicros + more, MAX_COST_MICROS)
}

/** Which of the two budgets was too small. */
export function shortage(
  payer: Customer,
  reservedMicros: number,
  tariff: Tariff,
  funds: bigint,
  now: number,
): 'insufficient_funds' | 'daily_spend_limit' {
  if (payer.lease?.isShortOfDay === true) return 'daily_spend_limit'
  const withFunds = affordableSeconds(tariff, budgetWith(reservedMicros, funds))
  const withBoth = affordableSeconds(tariff, budgetOf(payer, reservedMicros, funds, now))
  return withFunds > withBoth ? 'daily_spend_limit' : 'insufficient_funds'
}

/** For the record of the call. */
export function lackOf(
  code: DenialCode,
  payer: Customer,
  tariff: Tariff,
  funds: bigint,
  now: number,
): MoneyLack {
  const today = payer.dailyBudgetMicros(now)
  const available = code === 'daily_spend_limit' && today !== undefined ? today : funds
  return { requiredMicros: costMicros(tariff, 1), availableMicros: Number(available) }
}

export const isShortOfFunds = (...asked: Parameters<typeof shortage>): boolean =>
  shortage(...asked) === 'insufficient_funds'

/** A grant is unlimited only where every duration costs the same. */
export const grantCost = (tariff: Tariff | null, grantedSeconds: number): number =>
  tariff === null ? 0 : costMicros(tariff, grantedSeconds === Infinity ? 1 : grantedSeconds)
