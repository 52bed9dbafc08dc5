/**
 * The routes of a called number, in order (SPECIFICATION.md §10.2): the customer's before the
 * tenant's before global ones, longest prefix, lower priority number, then drawn by weight; or by
 * price.
 */
import { Buckets } from '../../schema/buckets.ts'
import {
  gatewayPort,
  gatewayUri,
  type CallerIdRule,
  type CarrierAuth,
  type CarrierRecord,
  type GatewayRecord,
  type OutboundRouteRecord,
  type GatewayTransport,
} from './routing-records.ts'
import {
  ANY_INTERNATIONAL,
  codeLength,
  exitCodeOf,
  internationalPrefix,
  withoutPlus as digitsOf,
} from '../../schema/rules/numbers.ts'
import type { HuntingRules } from '../../schema/contracts/hunting.ts'
import type { CompiledRule } from '../../schema/rules/header-rules.ts'
import type { ExitCodes } from '../../schema/contracts/charging.ts'
import type { ExpectedProfit, Tariff } from '../../schema/contracts/tariff.ts'
import { PrefixTable } from './prefix-table.ts'
import { type AllTurns, inTurn, type RouteShare, type Turns } from './turns.ts'

export interface OutboundCaller {
  readonly customerId: number | null
  readonly tenantId: number | null
}

type MatchedRoutes =
  | {
      readonly kind: 'routes'
      readonly routes: readonly OutboundRouteRecord[]
      /** The routes that share calls in turn, by id; absent: none does. */
      readonly shares?: ReadonlyMap<number, RouteShare>
    }
  | { readonly kind: 'emergency'; readonly routes: readonly OutboundRouteRecord[] }
  | { readonly kind: 'blocked'; readonly route: OutboundRouteRecord }

export class OutboundRoutes {
  readonly #byId = new Map<number, OutboundRouteRecord>()
  readonly #table: PrefixTable<OutboundRouteRecord>
  /** Emergency routes of all callers, by digits only. */
  readonly #emergencies = new Buckets<string, OutboundRouteRecord>()
  readonly #blocks = new Set<number>()
  readonly #rewritten = new Set<number>()
  readonly #protecting = new Set<number>()
  /** Routes that share calls in turn. */
  readonly #shared = new Set<number>()
  readonly #exitCodes: ExitCodes | undefined

  constructor(routes: readonly OutboundRouteRecord[], exitCodes?: ExitCodes) {
    this.#exitCodes = exitCodes
    this.#table = new PrefixTable([], exitCodes)
    for (const route of routes) this.set(route)
  }

  /** Gateways of some route may get another number than the one that is dialled. */
  get isRewriting(): boolean {
    return this.#rewritten.size > 0
  }

  /** Some route says that calls at a loss are told or refused. */
  get isProtecting(): boolean {
    return this.#protecting.size > 0
  }

  set(route: OutboundRouteRecord): void {
    this.delete(route.routeId)
    if (!route.isActive) return
    this.#byId.set(route.routeId, route)
    this.#table.add(route.prefix, route)
    if (isUrgent(route)) this.#emergencies.add(digitsOf(route.prefix), route)
    if (isBlock(route)) this.#blocks.add(route.routeId)
    if (isRewritten(route, this.#exitCodes)) this.#rewritten.add(route.routeId)
    if (route.lossTerms !== undefined) this.#protecting.add(route.routeId)
    if (isShared(route)) this.#shared.add(route.routeId)
  }

  delete(routeId: number): void {
    const route = this.#byId.get(routeId)
    if (route === undefined) return
    this.#byId.delete(routeId)
    this.#table.delete(route.prefix, route)
    if (isUrgent(route)) this.#emergencies.delete(digitsOf(route.prefix), route)
    this.#blocks.delete(routeId)
    this.#rewritten.delete(routeId)
    this.#protecting.delete(routeId)
    this.#shared.delete(routeId)
  }

  /** Whether any emergency route leads to exactly this number. */
  isEmergencyNumber(calledNumber: string): boolean {
    return this.#emergencies.of(digitsOf(calledNumber)).length > 0
  }

  /**
   * Whether a route, of whatever customer, speaks for a number that a caller of this tenant dials.
   */
  knows(calledNumber: string, tenantId: number | null): boolean {
    const digits = digitsOf(calledNumber)
    for (const routes of this.#table.matching(calledNumber))
      for (const route of routes) {
        const isTheirs = route.tenantId === null || tenantId === null || route.tenantId === tenantId
        if (isTheirs && (!route.isEmergency || digitsOf(route.prefix) === digits)) return true
      }
    return false
  }

  /**
   * The route that blocks a number that gateways would get; undefined: there is none. A block of
   * every number limits only dialled numbers. So does one of every number with `+`, unless all
   * digits that are sent were dialled.
   */
  blockOf(
    caller: OutboundCaller,
    sent: string,
    isDialled: boolean,
  ): OutboundRouteRecord | undefined {
    if (this.#blocks.size === 0) return undefined
    const matched = this.match(caller, sent, unweighted, unpriced)
    if (matched.kind !== 'blocked') return undefined
    const prefix = internationalPrefix(matched.route.prefix, this.#exitCodes)
    if (prefix === '' || (prefix === ANY_INTERNATIONAL && !isDialled)) return undefined
    return matched.route
  }

  /** The routes that may lead a number of this caller to a carrier, in no order. */
  leading(caller: OutboundCaller, calledNumber: string): readonly OutboundRouteRecord[] {
    const matched = this.match(caller, calledNumber, unweighted, unpriced)
    return matched.kind === 'routes' ? matched.routes : []
  }

  /**
   * Later routes are for failover. A blocking route ends the list; when it stands first, the call
   * is refused. Emergency routes come before all others and cannot be blocked, but only for
   * exactly that number: a number that merely starts with 112 is an ordinary call, and is paid for.
   * `turns` absent: nothing is shared in turn.
   */
  match(
    caller: OutboundCaller,
    calledNumber: string,
    random: () => number,
    priceOf: PriceOf,
    passOver: RouteSearch['passOver'] = () => undefined,
    turns?: Turns,
  ): MatchedRoutes {
    const tiers: OutboundRouteRecord[][] = [[], [], []]
    const emergency: OutboundRouteRecord[] = []
    const shares = turns && this.#shared.size > 0 ? new Map<number, RouteShare>() : undefined
    for (const routes of this.#table.matching(calledNumber)) {
      const ofPrefix: OutboundRouteRecord[][] = [[], [], []]
      const theirs = routes.filter((route) => {
        const isTheirs = tierOf(route, caller) !== undefined
        if (!isTheirs) passOver(passedRoute(route, 'other_caller'))
        return isTheirs
      })
      const drawn = orderByPreference(theirs, random)
      const ordered =
        turns && shares && theirs.some(({ routeId }) => this.#shared.has(routeId))
          ? inTurn(drawn, (route) => sharersOf(route, routes, caller), turns, shares)
          : drawn
      for (const route of blocksFirst(ordered)) {
        const tier = tierOf(route, caller) ?? 0
        if (!route.isEmergency) ofPrefix[tier]?.push(route)
        else if (digitsOf(route.prefix) === digitsOf(calledNumber) && route.mode !== 'block')
          emergency.push(route)
      }
      for (const [tier, ordered] of ofPrefix.entries())
        tiers[tier]?.push(...leastCostFirst(ordered, priceOf))
    }
    if (emergency.length > 0) return { kind: 'emergency', routes: emergency }
    const ordered = tiers.flat()
    const blockAt = ordered.findIndex((route) => route.mode === 'block')
    const [first] = ordered
    if (first && blockAt === 0) return { kind: 'blocked', route: first }
    if (blockAt === -1) return { kind: 'routes', routes: ordered, ...(shares?.size && { shares }) }
    for (const route of ordered.slice(blockAt)) passOver(passedRoute(route, 'after_block'))
    const before = ordered.slice(0, blockAt)
    return { kind: 'routes', routes: before, ...(shares?.size && { shares }) }
  }
}

/** A block is not drawn: of routes with one prefix and priority it stands first. */
const blocksFirst = (routes: readonly OutboundRouteRecord[]): readonly OutboundRouteRecord[] =>
  routes.some(isBlock)
    ? routes.toSorted((a, b) => a.priority - b.priority || Number(isBlock(b)) - Number(isBlock(a)))
    : routes

/** Chance and price change the order of routes alone. */
const unweighted = (): number => 0
const unpriced: PriceOf = () => undefined

const isUrgent = ({ isEmergency, mode }: OutboundRouteRecord): boolean =>
  isEmergency && mode !== 'block'

const isBlock = ({ mode }: OutboundRouteRecord): boolean => mode === 'block'

const isShared = ({ distribution, isEmergency, mode }: OutboundRouteRecord): boolean =>
  distribution !== 'weight' && !isEmergency && mode !== 'block'

/** 0 the customer's own, 1 its tenant's, 2 a common one; undefined: not for this caller. */
function tierOf(route: OutboundRouteRecord, caller: OutboundCaller): 0 | 1 | 2 | undefined {
  if (route.customerId !== null) return route.customerId === caller.customerId ? 0 : undefined
  if (route.tenantId !== null) return route.tenantId === caller.tenantId ? 1 : undefined
  return 2
}

/**
 * Names the routes with which one shares calls: those of the same prefix and owner. Undefined:
 * there are none.
 */
function sharersOf(
  route: OutboundRouteRecord,
  [first]: readonly OutboundRouteRecord[],
  caller: OutboundCaller,
): string | undefined {
  if (route.isEmergency || isBlock(route)) return undefined
  return `${first?.prefix ?? ''} ${tierOf(route, caller) ?? ''}`
}

/** Whether a route may send another number than the one that is dialled. */
const isRewritten = (
  { prefix, strip, prepend }: OutboundRouteRecord,
  exitCodes: ExitCodes = [],
): boolean => strip !== 0 || prepend !== '' || isWithCode(prefix, exitCodes)

const isWithCode = (prefix: string, exitCodes: ExitCodes): boolean =>
  internationalPrefix(prefix, exitCodes) !== digitsOf(prefix)

/**
 * The number as a route sends it. Stripping and prepending work on the digits, so a leading `+` is
 * dropped by either; `prepend` may bring it back. A route that is written with an exit code counts
 * its digits, too.
 */
export function rewriteByRoute(
  { prefix, strip, prepend }: OutboundRouteRecord,
  calledNumber: string,
  exitCodes: ExitCodes = [],
): string {
  const written = digitsOf(prefix)
  // A number that still begins with a code needs no other.
  const hasCode = (codeLength(calledNumber, exitCodes) ?? 0) > 0
  const code = isWithCode(prefix, exitCodes) && !hasCode ? exitCodeOf(written, exitCodes) : ''
  if (strip === 0 && prepend === '' && code === '') return calledNumber
  return prepend + (code + digitsOf(calledNumber)).slice(strip)
}

/** One carrier gateway offered to one call. */
export interface GatewayCandidate {
  readonly kind: 'gateway'
  readonly gatewayId: number
  readonly carrierId: number
  readonly carrierName: string
  readonly routeName: string
  /**
   * The price by which a least-cost route is ordered. Null: unknown; undefined: another kind of
   * route.
   */
  readonly price?: RoutePrice | null
  /** Present where it is asked for, or where the call goes there at a loss. */
  readonly profit?: ExpectedProfit | undefined
  /** The route whose floors its calls are measured for; absent: they are not measured. */
  readonly measuredBy?: number
  /** `sip:<host>:<port>;transport=udp`: where to send, without the number. */
  readonly uri: string
  readonly host: string
  readonly port: number
  readonly transport: GatewayTransport
  /** The called number as this carrier wants it. */
  readonly number: string
  readonly bought: BoughtNumber
  readonly auth: CarrierAuth
  readonly callerId: CallerIdRule
  readonly stripHeaders?: readonly string[] | undefined
  /** Rules for INVITEs to it. */
  readonly headerRules?: readonly CompiledRule[] | undefined
  /** Its calls are signed (STIR). */
  readonly isSigned?: true
  /** Absent: a call goes on after its answers as usual. */
  readonly hunting?: HuntingRules
  /** A redirect server has sent the call here. */
  readonly redirected?: RedirectedInvite
}

/** The parts of a 3xx that the INVITE to its target has. */
export interface RedirectedInvite {
  /** Parameters of the number in the Contact. */
  readonly parameters?: { readonly text: string; readonly rn?: string | undefined } | undefined
  /** Signatures that the redirect server has given (STIR). */
  readonly identity?: string | undefined
}

export function candidateOf(
  carrier: CarrierRecord,
  gateway: GatewayRecord,
  offer: Pick<GatewayCandidate, 'routeName' | 'bought'> & {
    readonly price: RoutePrice | null | undefined
    readonly profit?: ExpectedProfit | undefined
    readonly measuredBy?: number | undefined
  },
): GatewayCandidate {
  const { carrierId, name: carrierName, auth, callerId, stripHeaders } = carrier
  const { headerRules, hunting, stir } = carrier
  const { gatewayId, host, transport } = gateway
  return {
    kind: 'gateway',
    gatewayId,
    carrierId,
    carrierName,
    routeName: offer.routeName,
    ...(offer.price === undefined ? {} : { price: offer.price }),
    ...(offer.profit && { profit: offer.profit }),
    ...(offer.measuredBy !== undefined && { measuredBy: offer.measuredBy }),
    uri: gatewayUri(gateway),
    host,
    port: gatewayPort(gateway),
    transport,
    number: offer.bought.number,
    bought: offer.bought,
    auth,
    callerId,
    stripHeaders,
    ...(headerRules?.out && { headerRules: headerRules.out }),
    ...(stir?.isSigned === true && { isSigned: true as const }),
    ...(hunting && { hunting }),
  }
}

/** A call to a number as it is bought from a carrier, by its price list. */
export interface BoughtNumber {
  /** The number that is sent, and by which the carrier charges. */
  readonly number: string
  readonly dialled: string
  /** Null: what the carrier charges is not known. */
  readonly ratePlanId: number | null
  /** The owner of the carrier; null: the platform. */
  readonly tenantId: number | null
}

/** The price of a number by a carrier's price list. */
export interface CarrierPrice {
  readonly tariff: Tariff
  /** The carrier does not take calls to this number. */
  readonly isBlocked: boolean
}

/** The price of a call by the carrier of a route. */
export interface RoutePrice extends CarrierPrice {
  /** A call of the expected duration, in micro-units of the list's currency. */
  readonly expectedMicros: number
}

/** Undefined: there is no list, or no price for the number in it. */
export type PriceOf = (route: OutboundRouteRecord) => RoutePrice | undefined

/**
 * Routes of one prefix, ordered by preference: those with mode `lcr` change places among each
 * other, the cheapest first, and stand together where the first of them stood. Equal prices keep
 * their order; a route without a price comes last.
 */
export function leastCostFirst(
  routes: readonly OutboundRouteRecord[],
  priceOf: PriceOf,
): readonly OutboundRouteRecord[] {
  const at = routes.findIndex(isLeastCost)
  if (at === -1) return routes
  const priced = routes
    .filter(isLeastCost)
    .map((route) => ({ route, micros: priceOf(route)?.expectedMicros ?? Number.MAX_VALUE }))
    .toSorted((one, other) => one.micros - other.micros)
  const others = routes.slice(at).filter((route) => !isLeastCost(route))
  return [...routes.slice(0, at), ...priced.map(({ route }) => route), ...others]
}

const isLeastCost = ({ mode }: OutboundRouteRecord): boolean => mode === 'lcr'

/** The decision of outbound routes on a call. */
export type OutboundDecision =
  | {
      readonly kind: 'gateways'
      /** Gateways in the order in which they are tried; never empty. */
      readonly gateways: readonly GatewayCandidate[]
      /** The call skips wallet, limits and drain. */
      readonly isEmergency: boolean
      /** The next call goes to another one first. */
      readonly isInTurn?: true
    }
  /** 403. */
  | { readonly kind: 'blocked'; readonly routeName: string }
  /** Every carrier of the routes has reached `max_calls` or `max_cps`: 503 with `Retry-After`. */
  | { readonly kind: 'limited'; readonly limit?: string }
  /** Loss protection lets no carrier of the routes have the call: 503. */
  | { readonly kind: 'unprofitable' }
  /** No carrier of the routes has a price for the number: 503. */
  | { readonly kind: 'unpriced' }
  /** There is a route, but nothing behind it can take a call now: 503. */
  | { readonly kind: 'unavailable' }
  /** No route knows the number. */
  | { readonly kind: 'none' }

/** A route or gateway that takes no part in a call, and the reason. */
export interface PassedOver {
  readonly kind: 'route' | 'gateway'
  /** Name of the route or of the carrier. */
  readonly name: string
  /** SIP URI of the gateway; null: a whole route or carrier is passed over. */
  readonly uri: string | null
  readonly carrierId: number | null
  /** The tenant that it belongs to; null: the platform. */
  readonly tenantId: number | null
  readonly why:
    | ('other_caller' | 'after_block' | 'no_carrier' | 'blocked_by_carrier' | 'carrier_limit')
    | ('number_blocked' | 'number_stripped' | 'inbound_only' | 'gateway_down' | 'leads_to_platform')
    | ('no_carrier_price' | 'below_margin')
  /** The figures by which loss protection has judged; absent: another reason. */
  readonly profit?: ExpectedProfit | undefined
}

/**
 * How routes are searched. A call draws by chance, takes its turn and ignores `passOver`.
 */
export interface RouteSearch {
  /** Uniform in [0, 1). */
  readonly random: () => number
  readonly passOver: (passed: PassedOver) => void
  /** Each gateway is to say what a call would earn by it. Absent: only those at a loss do. */
  readonly isExplained?: boolean
  /** The turns that are taken; absent: none is, as no call is made. */
  readonly turns?: AllTurns | undefined
}

export const passedRoute = (
  { name, carrierId, tenantId }: OutboundRouteRecord,
  why: PassedOver['why'],
  profit?: ExpectedProfit,
): PassedOver => ({
  kind: 'route',
  name,
  uri: null,
  carrierId,
  tenantId,
  why,
  ...(profit && { profit }),
})

export const passedGateway = (
  { name, carrierId, tenantId }: CarrierRecord,
  gateway: GatewayRecord,
  why: PassedOver['why'],
): PassedOver => ({ kind: 'gateway', name, uri: gatewayUri(gateway), carrierId, tenantId, why })

/**
 * Order among equals of a carrier or a route: lower priority number first, then drawn by weight.
 */
interface Preference {
  readonly priority: number
  readonly weight: number
}

/**
 * Each next one of the same priority is drawn in proportion to its weight: the smallest of
 * exponential variables with those rates (Efraimidis and Spirakis, 2006).
 */
export function orderByPreference<Item extends Preference>(
  items: readonly Item[],
  random: () => number,
): Item[] {
  return items
    .map((item) => ({ item, arrival: -Math.log(1 - random()) / item.weight }))
    .toSorted(
      (one, other) => one.item.priority - other.item.priority || one.arrival - other.arrival,
    )
    .map(({ item }) => item)
}
