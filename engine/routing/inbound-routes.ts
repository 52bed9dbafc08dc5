/** Where a call from a trunk goes: called number prefix or domain → dispatcher set, extension or agent. */
import { digitsOf, PrefixTable } from './prefix-table.ts'
import type { InboundRouteRecord, InboundTarget } from './routing-records.ts'

/** Who sends, as far as a route can ask for it. */
export interface InboundCaller {
  readonly carrierId: number | null
  readonly tenantId: number | null
}

/**
 * Order: routes of the carrier before those of any, a named domain before any, the longest prefix,
 * then the lower priority number, then the older route. A tenant's carrier reaches only routes of
 * its tenant and common ones; a common carrier carries the numbers of all tenants.
 */
export class InboundRoutes {
  readonly #table: PrefixTable<InboundRouteRecord>

  constructor(routes: readonly InboundRouteRecord[]) {
    const active = routes.filter((route) => route.isActive)
    this.#table = new PrefixTable(active.map((route) => [route.prefix ?? '', route] as const))
  }

  find(caller: InboundCaller, calledNumber: string, domain: string): InboundTarget | undefined {
    let best: { readonly route: InboundRouteRecord; readonly rank: number } | undefined
    for (const routes of this.#table.matching(calledNumber))
      for (const route of routes) {
        if (!admits(route, caller, domain)) continue
        const rank = rankOf(route)
        // Longer prefixes come first, so a later route must be strictly more specific.
        const isBetter = !best || rank > best.rank || (rank === best.rank && isBefore(route, best))
        if (isBetter) best = { route, rank }
      }
    return best?.route.target
  }
}

function admits(route: InboundRouteRecord, caller: InboundCaller, domain: string): boolean {
  if (route.carrierId !== null && route.carrierId !== caller.carrierId) return false
  if (route.domain !== null && route.domain.toLowerCase() !== domain.toLowerCase()) return false
  return route.tenantId === null || caller.tenantId === null || route.tenantId === caller.tenantId
}

const rankOf = (route: InboundRouteRecord) =>
  (route.carrierId === null ? 0 : 2) + (route.domain === null ? 0 : 1)

function isBefore(
  route: InboundRouteRecord,
  best: { readonly route: InboundRouteRecord },
): boolean {
  if (prefixLength(route) !== prefixLength(best.route)) return false
  const byPriority = route.priority - best.route.priority
  return byPriority < 0 || (byPriority === 0 && route.routeId < best.route.routeId)
}

const prefixLength = (route: InboundRouteRecord) => digitsOf(route.prefix ?? '').length
