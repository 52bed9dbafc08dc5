import type { RoutingDeps } from './routing/routing.ts'
import type { Ocs } from './charging/ocs.ts'
import { costMicros } from './charging/pricing/price.ts'

/**
 * Prices of carriers, and of a call of one minute, by which routes are compared: connect fees and
 * long first increments count.
 *
 * @param now milliseconds UTC.
 */
export const minutePrices =
  (ocs: Pick<Ocs, 'rateFor'>, now: () => number): RoutingDeps['carrierPrice'] =>
  (ratePlanId, number, at = now()) => {
    const rate = ocs.rateFor(ratePlanId, number, at)
    if (rate === undefined) return undefined
    const { tariff, isBlocked } = rate
    return { tariff, minuteMicros: costMicros(tariff, 60), isBlocked }
  }
