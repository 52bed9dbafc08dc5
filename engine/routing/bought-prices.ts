/** Prices that carriers take for the numbers that they get, by their lists. */
import type { ExitCodes } from '../../schema/contracts/charging.ts'
import type { Tariff } from '../../schema/contracts/tariff.ts'
import { countedNumbers } from '../../schema/rules/numbers.ts'
import type { BoughtNumber, CarrierPrice, RoutePrice } from './outbound-routes.ts'

export interface BoughtPricesDeps {
  /**
   * The price of a number by a price list, at a time in milliseconds UTC (absent: now). Undefined:
   * the list has none. Absent: prices are not known here (`OCS_URL`).
   */
  readonly carrierPrice?:
    ((ratePlanId: number, number: string, at?: number) => CarrierPrice | undefined) | undefined
  /** The exact price of a call. */
  readonly costOf: (tariff: Tariff, seconds: number) => number
  /** How long a call to a number usually lasts. */
  readonly expectedSeconds: (calledNumber: string) => number
  /** Dialled in place of `+`; undefined: the installation has none. */
  readonly exitCodes?: ExitCodes | undefined
}

type PricedNumber = Omit<BoughtNumber, 'tenantId'>

export class BoughtPrices {
  readonly #deps: BoughtPricesDeps

  constructor(deps: BoughtPricesDeps) {
    this.#deps = deps
  }

  /** Without prices here (`OCS_URL`) no list is known. */
  hasList({ ratePlanId }: { readonly ratePlanId: number | null }): boolean {
    return ratePlanId !== null && this.#deps.carrierPrice !== undefined
  }

  /** Returns the highest price where the rules of a carrier make several numbers of one. */
  priceOf({ number: sent, dialled, ratePlanId }: PricedNumber, at?: number) {
    const { exitCodes, carrierPrice, costOf } = this.#deps
    if (ratePlanId === null || carrierPrice === undefined) return undefined
    const minuteMicros = ({ tariff }: CarrierPrice): number => costOf(tariff, 60)
    let mostExpensive: CarrierPrice | undefined
    for (const number of countedNumbers(sent, dialled, exitCodes)) {
      const price = carrierPrice(ratePlanId, number, at)
      if (price === undefined || mostExpensive?.isBlocked) continue
      if (!mostExpensive || price.isBlocked || minuteMicros(price) > minuteMicros(mostExpensive))
        mostExpensive = price
    }
    return mostExpensive ?? carrierPrice(ratePlanId, dialled, at)
  }

  /** The price of a call that is expected to last as long as those to the dialled number. */
  expectedPrice(bought: PricedNumber, dialled: string): RoutePrice | undefined {
    const price = this.priceOf(bought)
    if (price === undefined) return undefined
    const { costOf, expectedSeconds } = this.#deps
    return { ...price, expectedMicros: costOf(price.tariff, expectedSeconds(dialled)) }
  }

  /** Whether a price is known, and not above that of the dialled number by the same list. */
  isNoDearer(
    price: RoutePrice | undefined,
    { ratePlanId }: { readonly ratePlanId: number | null },
    dialled: string,
  ): boolean {
    const usual = this.expectedPrice({ number: dialled, dialled, ratePlanId }, dialled)
    if (price === undefined || usual === undefined || usual.isBlocked) return false
    return price.expectedMicros <= usual.expectedMicros
  }
}
