import type { RoutingDeps } from './routing/routing.ts'
import type { Ocs } from './charging/ocs.ts'
import { costMicros } from './charging/pricing/price.ts'

/**
 * Prices of a call of one minute, by which routes are compared: connect fees and long first
 * increments count.
 *
 * @param now milliseconds UTC.
 */
export const minutePrices =
  (ocs: Pick<Ocs, 'rateFor'>, now: () => number): RoutingDeps['carrierPrice'] =>
  (ratePlanId, number) => {
    const rate = ocs.rateFor(ratePlanId, number, now())
    return rate && { minuteMicros: costMicros(rate.tariff, 60), isBlocked: rate.isBlocked }
  }
