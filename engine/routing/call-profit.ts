/**
 * Earnings of one call by each carrier that might take it: the sale is priced once, and only where
 * a row says something about losses, or all figures are to be shown.
 */
import type { ExpectedProfit } from '../../schema/contracts/tariff.ts'
import type { LossTerms } from '../../schema/rules/loss-protection.ts'
import { type ExpectedCall, expectedProfit } from './loss-guard.ts'
import type { RoutePrice } from './outbound-routes.ts'

interface CallProfitDeps {
  /** Terms of the payer and its plan, which hold for all routes. */
  readonly terms: readonly LossTerms[]
  /** Looks up how long the call is expected to last, and what it sells for. */
  readonly expect: () => ExpectedCall
  /** All figures are to be shown. */
  readonly isExplained: boolean
}

/** A carrier on a route; its price is undefined where it is not known. */
interface AskedRoute {
  readonly lossTerms?: LossTerms | undefined
  readonly carrierTenantId: number | null
  readonly priceOf: () => RoutePrice | undefined
}

export class CallProfit {
  readonly #deps: CallProfitDeps
  #expected: ExpectedCall | undefined

  constructor(deps: CallProfitDeps) {
    this.#deps = deps
  }

  /** Undefined: nothing is said about losses. */
  by({ lossTerms, carrierTenantId, priceOf }: AskedRoute): ExpectedProfit | undefined {
    const { terms, expect, isExplained } = this.#deps
    if (lossTerms === undefined && terms.length === 0 && !isExplained) return undefined
    const narrowest = lossTerms === undefined ? terms : [lossTerms, ...terms]
    const offered = { price: priceOf(), carrierTenantId }
    return expectedProfit((this.#expected ??= expect()), offered, narrowest)
  }
}
