/**
 * Computes the rest of a call's price after its carrier, and whether loss protection lets the
 * carrier have the call (D402). Pure.
 */
import type { ExpectedProfit, Tariff } from '../../schema/contracts/tariff.ts'
import { isBelow, type LossTerms } from '../../schema/rules/loss-protection.ts'
import type { RoutePrice } from './outbound-routes.ts'

/** The prices that customers pay, and what is said about losses. */
export interface Sales {
  /** The terms of a customer, then those of its plan. Empty: neither says anything. */
  termsOf(customerId: number): readonly LossTerms[]
  /** The price of a call that it pays; undefined: it has none. */
  tariffOf(customerId: number, call: SoldCall): Tariff | undefined
  /** Whether its plan blocks a number. */
  isBlocked(customerId: number, number: string): boolean
}

export interface SoldCall {
  readonly calledNumber: string
  /** The numbers by which the call is priced; empty: the called one. */
  readonly sent: readonly string[]
  readonly routingNumber: string | undefined
}

/** A call for which carriers are compared. */
export interface ExpectedCall {
  readonly seconds: number
  /** Undefined: nobody pays for it here. */
  readonly sale: { readonly tariff: Tariff; readonly micros: number } | undefined
}

/** A carrier on a route, and what it takes; its price is undefined where it is not known. */
interface Offered {
  readonly price: RoutePrice | undefined
  readonly carrierTenantId: number | null
}

/** @param terms from the narrowest to the widest. */
export function expectedProfit(
  { seconds, sale }: ExpectedCall,
  { price: listed, carrierTenantId }: Offered,
  terms: readonly LossTerms[],
): ExpectedProfit {
  const price = listed?.isBlocked === true ? undefined : listed
  const isComparable = price !== undefined && price.tariff.currency === sale?.tariff.currency
  const marginMicros = isComparable ? sale.micros - price.expectedMicros : null
  const judged = judge(terms, { seconds, saleMicros: sale?.micros, marginMicros, carrierTenantId })
  return {
    seconds,
    costMicros: price?.expectedMicros ?? null,
    costCurrency: price?.tariff.currency ?? null,
    saleMicros: sale?.micros ?? null,
    saleCurrency: sale?.tariff.currency ?? null,
    salePrefix: sale?.tariff.prefix ?? null,
    marginMicros,
    carrierTenantId,
    ...judged,
  }
}

interface Figures {
  readonly seconds: number
  /** Undefined: no protection applies. */
  readonly saleMicros: number | undefined
  readonly marginMicros: number | null
  readonly carrierTenantId: number | null
}

type Judged = Pick<ExpectedProfit, 'verdict' | 'judgedBy'>

/**
 * The platform protects its money and a tenant its own: of the rows of each the narrowest counts,
 * and the stricter of both decides, so that neither lifts what the other has set.
 */
function judge(terms: readonly LossTerms[], figures: Figures): Judged {
  if (terms.length === 0 || figures.saleMicros === undefined) return kept
  const ofPlatform = terms.find(({ tenantId }) => tenantId === null)
  const ofTenant = terms.find(({ tenantId }) => tenantId !== null)
  const verdicts = [ofPlatform, ofTenant].map((each) => each && judgeBy(each, figures))
  const find = (wanted: ExpectedProfit['verdict']) =>
    verdicts.find((each) => each?.verdict === wanted)
  return find('refused') ?? find('warned') ?? kept
}

const kept: Judged = { verdict: 'kept', judgedBy: null }

function judgeBy({ protection, leastMargin, tenantId }: LossTerms, figures: Figures): Judged {
  if (protection === 'never') return kept
  const { seconds, saleMicros = 0, carrierTenantId } = figures
  // The cost by a carrier is for its owner (D392): others could find it by trying margins.
  const isVisible = tenantId === null || tenantId === carrierTenantId
  const marginMicros = isVisible ? figures.marginMicros : null
  const judgedBy = { tenantId }
  if (marginMicros === null)
    return protection === 'strict' ? { verdict: 'refused', judgedBy } : kept
  if (!isBelow(leastMargin, marginMicros, saleMicros, seconds)) return kept
  return { verdict: protection === 'warn' ? 'warned' : 'refused', judgedBy }
}
