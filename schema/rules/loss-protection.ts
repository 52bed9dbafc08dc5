/**
 * Loss protection: what a route, a customer or a plan says about calls that would earn less than
 * wanted, of which the narrowest one that says something counts (D402).
 */
import { moneyToDecimal, parseMoney } from '../columns.ts'
import type { LossProtection } from '../contracts/tariff.ts'

/** The least that has to be left of the price of a call. */
export type LeastMargin =
  | { readonly kind: 'amount'; readonly microsPerMinute: number }
  /** A part of what the customer pays, in hundredths of a per cent. */
  | { readonly kind: 'share'; readonly basisPoints: number }

export interface LossTerms {
  readonly protection: LossProtection
  readonly leastMargin: LeastMargin
  /** The tenant that says so; null: the platform. */
  readonly tenantId: number | null
}

/** A minute does not cost more anywhere: beyond that every carrier would be too expensive. */
const MAX_MICROS_PER_MINUTE = 1_000_000_000_000

/** Reads an amount per minute (`0.002`) or a percentage (`5%`); undefined: it is neither. */
export function readLeastMargin(text: string): LeastMargin | undefined {
  const [, whole, fraction = ''] = /^(\d{1,3})(?:\.(\d{1,2}))?%$/.exec(text) ?? []
  if (whole !== undefined) {
    const basisPoints = Number(whole) * 100 + Number(fraction.padEnd(2, '0'))
    return basisPoints <= 10_000 ? { kind: 'share', basisPoints } : undefined
  }
  const micros = parseMoney(text)
  return micros === undefined || micros < 0 || micros > MAX_MICROS_PER_MINUTE
    ? undefined
    : { kind: 'amount', microsPerMinute: micros }
}

/** The same in its only spelling: `5%`, `2.5%`, `0.002`. */
export const leastMarginText = (least: LeastMargin): string =>
  least.kind === 'amount' ? moneyToDecimal(least.microsPerMinute) : `${least.basisPoints / 100}%`

interface LossColumns {
  readonly loss_protection: LossProtection | null
  readonly min_margin: string | null
  readonly tenant_id: number | null
  readonly is_loss_by_tenant: number
}

/** Undefined: the row says nothing. */
export function lossTermsOf(row: LossColumns): LossTerms | undefined {
  const { loss_protection: protection, min_margin: margin } = row
  if (protection === null) return undefined
  const leastMargin = readLeastMargin(margin ?? '0') ?? noMargin
  return { protection, leastMargin, tenantId: row.is_loss_by_tenant === 1 ? row.tenant_id : null }
}

const noMargin: LeastMargin = { kind: 'amount', microsPerMinute: 0 }

/**
 * Whether less is left of a call than wanted. Exact: products of amounts may be beyond 2^53.
 *
 * @param seconds for which the customer pays `saleMicros`.
 */
export function isBelow(
  least: LeastMargin,
  marginMicros: number,
  saleMicros: number,
  seconds: number,
): boolean {
  const margin = BigInt(marginMicros)
  return least.kind === 'amount'
    ? margin * 60n < BigInt(least.microsPerMinute) * BigInt(seconds)
    : margin * 10_000n < BigInt(least.basisPoints) * BigInt(saleMicros)
}
