/** The prices by which carriers are compared: what they take, and what customers pay. */
import type { Ocs } from './charging/ocs.ts'
import type { RoutingDeps } from './routing/routing.ts'

/** @param now milliseconds UTC. */
export function pricesOf(
  ocs: Pick<Ocs, 'rateFor' | 'lossTermsOf' | 'tariffOf' | 'isBlockedFor'>,
  now: () => number,
): Pick<RoutingDeps, 'carrierPrice' | 'sales'> {
  return {
    carrierPrice: (ratePlanId, number, at = now()) => {
      const rate = ocs.rateFor(ratePlanId, number, at)
      return rate && { tariff: rate.tariff, isBlocked: rate.isBlocked }
    },
    sales: {
      termsOf: (customerId) => ocs.lossTermsOf(customerId),
      tariffOf: (customerId, call) => ocs.tariffOf(customerId, call, now()),
      isBlocked: (customerId, number) => ocs.isBlockedFor(customerId, number, now()),
    },
  }
}
