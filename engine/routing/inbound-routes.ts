/**
 * The target of a call from a trunk: called number prefix or domain → dispatcher set, extension or
 * agent.
 */
import type { ExitCodes } from '../../schema/contracts/charging.ts'
import type { Verification } from '../../schema/contracts/stir.ts'
import { internationalPrefix } from '../../schema/rules/numbers.ts'
import { type Tenancy } from './tenancy.ts'
import type { InboundRouteRecord, InboundTarget } from './routing-records.ts'
import { PrefixTable } from './prefix-table.ts'

/** The sender of a call, for the conditions of routes. */
export interface InboundCaller {
  readonly carrierId: number | null
  readonly tenantId: number | null
}

/**
 * Order: routes of the carrier before those of any, a named domain before any, the longest prefix,
 * then the platform's before a tenant's, then those for a verification, then the lower priority
 * number, then the older route. A tenant's carrier reaches only routes of its tenant and common
 * ones; all other calls reach a tenant's route by the tenant's own numbers and domains only.
 */
export class InboundRoutes {
  readonly #byId = new Map<number, InboundRouteRecord>()
  readonly #table: PrefixTable<InboundRouteRecord>
  readonly #tenancy: Ownership
  readonly #exitCodes: ExitCodes | undefined

  constructor(routes: readonly InboundRouteRecord[], tenancy: Ownership, exitCodes?: ExitCodes) {
    this.#tenancy = tenancy
    this.#exitCodes = exitCodes
    this.#table = new PrefixTable([], exitCodes)
    for (const route of routes) this.set(route)
  }

  set(route: InboundRouteRecord): void {
    this.delete(route.routeId)
    if (!route.isActive) return
    this.#byId.set(route.routeId, route)
    this.#table.add(route.prefix ?? '', route)
  }

  delete(routeId: number): void {
    const route = this.#byId.get(routeId)
    if (route === undefined) return
    this.#byId.delete(routeId)
    this.#table.delete(route.prefix ?? '', route)
  }

  /** `verification`: what Identity headers have proved; absent: nobody has looked at them. */
  find(
    caller: InboundCaller,
    calledNumber: string,
    domain: string,
    verification?: Verification,
  ): InboundTarget | undefined {
    let best: { readonly route: InboundRouteRecord; readonly rank: number } | undefined
    let owner: { readonly tenantId: number | undefined } | undefined
    const isOfOwner = (tenantId: number): boolean => {
      owner ??= { tenantId: this.#tenancy.ownerOf(calledNumber) }
      return owner.tenantId === tenantId
    }
    for (const routes of this.#table.matching(calledNumber))
      for (const route of routes) {
        if (!admits(route, caller, domain, verification)) continue
        if (!this.#isOwn(route, caller, isOfOwner)) continue
        const rank = rankOf(route)
        // Longer prefixes come first, so a later route must be strictly more specific.
        const isBetter =
          !best || rank > best.rank || (rank === best.rank && this.#isBefore(route, best, caller))
        if (isBetter) best = { route, rank }
      }
    return best?.route.target
  }

  /**
   * Whether the call is the route's to take. `admits` has compared its domain with the called one.
   */
  #isOwn(
    { tenantId, domain }: InboundRouteRecord,
    caller: InboundCaller,
    isOfOwner: (tenantId: number) => boolean,
  ): boolean {
    if (tenantId === null || tenantId === caller.tenantId) return true
    if (caller.tenantId !== null) return false
    if (domain !== null && this.#tenancy.ownsDomain(tenantId, domain)) return true
    return isOfOwner(tenantId)
  }

  #isBefore(
    route: InboundRouteRecord,
    best: { readonly route: InboundRouteRecord },
    caller: InboundCaller,
  ): boolean {
    if (this.#prefixOf(route) !== this.#prefixOf(best.route)) return false
    const isOfPlatform = route.tenantId === null
    if (caller.tenantId === null && isOfPlatform !== (best.route.tenantId === null))
      return isOfPlatform
    const isForSome = route.verification !== undefined
    if (isForSome !== (best.route.verification !== undefined)) return isForSome
    const byPriority = route.priority - best.route.priority
    return byPriority < 0 || (byPriority === 0 && route.routeId < best.route.routeId)
  }

  #prefixOf({ prefix }: InboundRouteRecord): string {
    return internationalPrefix(prefix ?? '', this.#exitCodes)
  }
}

type Ownership = Pick<Tenancy, 'ownerOf' | 'ownsDomain'>

function admits(
  route: InboundRouteRecord,
  caller: InboundCaller,
  domain: string,
  verification: Verification | undefined,
): boolean {
  if (route.carrierId !== null && route.carrierId !== caller.carrierId) return false
  if (route.verification !== undefined && route.verification !== verification) return false
  return route.domain === null || route.domain.toLowerCase() === domain.toLowerCase()
}

const rankOf = (route: InboundRouteRecord) =>
  (route.carrierId === null ? 0 : 2) + (route.domain === null ? 0 : 1)
