/** Least-cost routing (SPECIFICATION.md §10.2, mode `lcr`): carriers in the order of what a call costs by them. */
import type { OutboundRouteRecord } from '../routing-records.ts'

/** What a call costs by a carrier's price list. */
export interface CarrierPrice {
  /** A call of one minute, connect fee included, in micro-units of the list's currency. */
  readonly minuteMicros: number
  /** The carrier does not take calls to this number. */
  readonly isBlocked: boolean
}

/** Undefined: there is no list, or no price for the number in it. */
export type PriceOf = (route: OutboundRouteRecord) => CarrierPrice | undefined

/**
 * Routes of one prefix, ordered by preference: those with mode `lcr` change places among each other,
 * the cheapest first, and stand together where the first of them stood. Equal prices keep
 * their order; who names no price comes last.
 */
export function leastCostFirst(
  routes: readonly OutboundRouteRecord[],
  priceOf: PriceOf,
): readonly OutboundRouteRecord[] {
  const at = routes.findIndex(isLeastCost)
  if (at === -1) return routes
  const priced = routes
    .filter(isLeastCost)
    .map((route) => ({ route, micros: priceOf(route)?.minuteMicros ?? Number.MAX_VALUE }))
    .toSorted((one, other) => one.micros - other.micros)
  const others = routes.slice(at).filter((route) => !isLeastCost(route))
  return [...routes.slice(0, at), ...priced.map(({ route }) => route), ...others]
}

const isLeastCost = ({ mode }: OutboundRouteRecord): boolean => mode === 'lcr'
