/**
 * Recognizes callers and chooses destinations (SPECIFICATION.md §10.1 and §10.2): the facade over
 * sources, inbound and outbound routes. Answers come from tables in memory, which follow the rows
 * that change.
 */
import { isIP } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { Buckets } from '../../schema/buckets.ts'
import { namesBehind, sipTarget } from '../../schema/net/sip-target.ts'
import { OneAtATime } from '../../schema/one-at-a-time.ts'
import { CallLimit, type SharedCounting } from '../shares/call-limit.ts'
import { type AgentDecision, Agents } from './agents.ts'
import {
  type BoughtNumber,
  orderByPreference,
  candidateOf,
  type GatewayCandidate,
  type RouteSearch,
  type OutboundCaller,
  type OutboundDecision,
  OutboundRoutes,
  passedGateway,
  type PassedOver,
  passedRoute,
  type PriceOf,
  type RoutePrice,
  rewriteByRoute,
} from './outbound-routes.ts'
import { CarrierLimits } from './carrier-limits.ts'
import {
  isTargetOf,
  type RedirectedCall,
  type RedirectRefusal,
  type RedirectTarget,
} from './redirects.ts'
import { type QualityStatus, RouteQualities, type RouteQualitiesDeps } from './route-qualities.ts'
import { takeTurn } from './take-turn.ts'
import { type AllTurns, sharingOf, Turns } from './turns.ts'
import { type AddressesOf, GatewayGuard } from './gateway-guard.ts'
import {
  gatewayNames,
  type AgentRecord,
  type CarrierAuth,
  type CarrierRecord,
  type GatewayRecord,
  type InboundTarget,
  type OutboundRouteRecord,
  type OwnedGateway,
  type RoutingRecords,
} from './routing-records.ts'
import { InboundRoutes } from './inbound-routes.ts'
import { type Origin, Recognition, type RecognitionDeps } from './recognition.ts'
import { type CalledNumber, numberDecision, type NumberDecision } from './number-decision.ts'
import { Tenancy } from './tenancy.ts'
import type { CompiledRule } from '../../schema/rules/header-rules.ts'
import type { ChangedRouting } from '../../schema/contracts/changed-rows.ts'
import { SLICE } from '../../schema/sql/query.ts'
import type { Verification } from '../../schema/contracts/stir.ts'
import type { Distribution, MediaRules } from '../../schema/contracts/field-values.ts'
import type { RouteQualityStatus } from '../../schema/contracts/route-quality.ts'
import type { QualityChange } from './route-quality.ts'
import {
  countedNumbers,
  international,
  isName,
  unchanged,
  withoutPlus as digitsOf,
} from '../../schema/rules/numbers.ts'
import type { BoughtPrice, ExpectedProfit } from '../../schema/contracts/tariff.ts'
import { BoughtPrices, type BoughtPricesDeps } from './bought-prices.ts'
import { CallProfit } from './call-profit.ts'
import type { ExpectedCall, Sales } from './loss-guard.ts'
import type { DnsAnswers, Sender } from '../../schema/contracts/gateways.ts'
import { plainHost } from '../../schema/sip/index.ts'

export type { ExtensionOrigin, Origin } from './recognition.ts'
export type { GatewayCandidate, OutboundDecision } from './outbound-routes.ts'

/** The destination of a call that no route matches. */
export type DefaultTarget =
  { readonly kind: 'default'; readonly setId: number } | { readonly kind: 'none' }

/** Gateways that a call is sent to at most, however many routes match. */
const MAX_GATEWAYS = 16

export class Routing {
  readonly #deps: RoutingDeps
  readonly #reloads: OneAtATime
  readonly #recognition: Recognition
  readonly #limits: CarrierLimits
  readonly #agentLimit: CallLimit
  readonly #carriers = new Map<number, CarrierRecord>()
  /** Gateways of all carriers, in whatever state. */
  readonly #gateways = new Buckets<number, OwnedGateway>()
  #tenancy = new Tenancy([])
  #guard = new GatewayGuard([], () => [])
  #capVersion = -1
  readonly #prices: BoughtPrices
  readonly #qualities: RouteQualities
  readonly #turns: AllTurns = { routes: new Turns(), gateways: new Turns() }
  readonly #search: RouteSearch
  #agents: Agents
  #inbound = new InboundRoutes([], this.#tenancy)
  #outbound = new OutboundRoutes([])
  /** Gateways of some carrier may get another number than the one that is dialled. */
  #hasRewritingCarrier = false

  /**
   * @throws {RangeError} when `trustedSources` or `edgeProxies` holds a text that is no network.
   */
  constructor(deps: RoutingDeps) {
    this.#deps = deps
    this.#reloads = new OneAtATime(() => this.#reloadAll())
    this.#recognition = new Recognition(deps)
    this.#prices = new BoughtPrices(deps)
    this.#search = { random: deps.random, passOver: () => undefined, turns: this.#turns }
    this.#qualities = new RouteQualities({
      now: deps.now,
      at: deps.at,
      onChange: (change, status) => deps.onQuality?.(change, this.#named(status)),
    })
    this.#limits = new CarrierLimits(deps.activeCarrierCalls, deps.now, deps.shared)
    this.#agentLimit = new CallLimit('agent', deps.activeAgentCalls, deps.shared)
    this.#agents = new Agents([], this.#agentLimit, () => false)
  }

  /**
   * Takes over what is stored now; undefined: all of it, of which there is nothing before. Live
   * calls are not touched.
   */
  reload(changed?: ChangedRouting): Promise<void> {
    if (changed === undefined) return this.#reloads.request()
    return this.#reloads.between(async () => this.#take(await this.#deps.load(changed), changed))
  }

  async #reloadAll(): Promise<void> {
    for (const _ of this.#replacing(await this.#deps.load())) await nextTurn()
  }

  replace(records: RoutingRecords): void {
    for (const _ of this.#replacing(records));
  }

  /**
   * Builds new tables, a slice at a time, while calls use the present ones; the last step replaces
   * all at once.
   */
  *#replacing(records: RoutingRecords): Generator<void> {
    const { carriers, gateways, agents, problems } = records
    const { exitCodes, onProblem } = this.#deps
    const tenancy = new Tenancy([], exitCodes)
    const inbound = new InboundRoutes([], tenancy, exitCodes)
    const outbound = new OutboundRoutes([], exitCodes)
    const built = new Agents([], this.#agentLimit, (...asked) => tenancy.ownsNumber(...asked))
    yield* sliced(records.tenants, (tenant) => tenancy.set(tenant))
    yield* sliced(records.inboundRoutes, (route) => inbound.set(route))
    yield* sliced(records.outboundRoutes, (route) => outbound.set(route))
    const routeIds = new Set(records.outboundRoutes.map(({ routeId }) => routeId))
    yield* sliced(agents, (agent) => {
      built.set(agent)
      this.#watchAgent(agent.agentId, agent)
    })
    const agentIds = new Set(agents.map(({ agentId }) => agentId))
    for (const { agentId } of this.#agents.all())
      if (!agentIds.has(agentId)) this.#watchAgent(agentId, undefined)
    this.#tenancy = tenancy
    this.#inbound = inbound
    this.#outbound = outbound
    for (const route of records.outboundRoutes) this.#qualities.set(route)
    this.#qualities.keepOnly(routeIds)
    this.#turns.routes.keepOnly(routeIds)
    this.#agents = built
    this.#agentLimit.keepOnly(agentIds)
    this.#carriers.clear()
    this.#gateways.clear()
    for (const carrier of carriers) this.#carriers.set(carrier.carrierId, carrier)
    for (const gateway of gateways) this.#gateways.add(gateway.carrierId, gateway)
    this.#followCarriers()
    this.noteCalls()
    for (const problem of problems) onProblem(problem)
  }

  /** Replaces rows in one step: calls see a row as it was, or as it is. */
  #take(records: RoutingRecords, { of, ids }: ChangedRouting): void {
    for (const id of ids) this.#forget(of, id)
    if (of === 'outbound_route') this.#followQuality(ids, records.outboundRoutes)
    for (const tenant of records.tenants) this.#tenancy.set(tenant)
    for (const route of records.inboundRoutes) this.#inbound.set(route)
    for (const route of records.outboundRoutes) this.#outbound.set(route)
    for (const agent of records.agents) {
      this.#agents.set(agent)
      this.#watchAgent(agent.agentId, agent)
      this.#agentLimit.note(agent.agentId, agent.maxCalls)
    }
    for (const carrier of records.carriers) {
      this.#carriers.set(carrier.carrierId, carrier)
      this.#limits.noteCalls(carrier)
    }
    for (const { carrierId } of records.gateways) this.#gateways.clear(carrierId)
    for (const gateway of records.gateways) this.#gateways.add(gateway.carrierId, gateway)
    if (of === 'carrier' || records.carriers.length > 0) this.#followCarriers()
    if (of === 'tenant') this.#recognition.replace([...this.#carriers.values()], this.#tenancy)
    for (const problem of records.problems) this.#deps.onProblem(problem)
  }

  #forget(of: ChangedRouting['of'], id: number): void {
    switch (of) {
      case 'tenant':
        return this.#tenancy.delete(id)
      case 'carrier':
        this.#carriers.delete(id)
        return this.#gateways.clear(id)
      case 'outbound_route':
        return this.#outbound.delete(id)
      case 'inbound_route':
        return this.#inbound.delete(id)
      case 'agent':
        this.#agents.delete(id)
        return this.#watchAgent(id, undefined)
      case 'dispatcher_set':
    }
  }

  /** The floors of these routes are others, or they are gone; their shares begin anew. */
  #followQuality(ids: readonly number[], routes: readonly OutboundRouteRecord[]): void {
    for (const route of routes) this.#qualities.set(route)
    for (const id of ids) {
      this.#turns.routes.forget(id)
      if (!routes.some(({ routeId }) => routeId === id)) this.#qualities.delete(id)
    }
  }

  #watchAgent(agentId: number, agent: AgentRecord | undefined): void {
    this.#deps.hosts.watch(`agent ${agentId}`, agent === undefined ? [] : namesIn(agent.uri))
  }

  /** The carriers are others than before: who is recognized, probed and registered with. */
  #followCarriers(): void {
    const { hosts, onLoaded } = this.#deps
    const carriers = [...this.#carriers.values()]
    this.#limits.keepOnly(new Set(this.#carriers.keys()))
    const own = carriers.flatMap((carrier) => carrier.gateways)
    this.#turns.gateways.keepOnly(new Set(own.map(({ gatewayId }) => gatewayId)))
    this.#hasRewritingCarrier = carriers.some(({ numberRules }) => numberRules.out !== unchanged)
    const gateways = [...own, ...this.#gateways.all()]
    hosts.watch('routing', [...new Set(gateways.flatMap(gatewayNames))])
    this.#recognition.replace(carriers, this.#tenancy)
    this.#buildCap()
    onLoaded(carriers)
  }

  /** Recognizes a source by its address; extensions are recognized by their credentials. */
  recognize(source: { readonly address: string; readonly port: number }): Origin {
    return this.#recognition.recognize(source)
  }

  /** Whether a carrier has a gateway at this address, in use or not, whatever the port. */
  hasGatewayAt(carrierId: number, address: string): boolean {
    return this.#recognition.hasGatewayAt(carrierId, address)
  }

  /**
   * The carrier at whose gateway a request with this next hop would arrive; undefined: at none.
   * Only a `GatewayCandidate` may go there, as only its call is priced.
   */
  gatewayBehind(uri: string, sender: Sender): string | undefined {
    this.#followHosts()
    return this.#guard.behind(uri, sender)?.carrier
  }

  /** The owner of a carrier; null: the platform, undefined: there is no such carrier any more. */
  tenantOfCarrier(carrierId: number): number | null | undefined {
    return this.#carriers.get(carrierId)?.tenantId
  }

  /** Whether a next hop is at a gateway of this carrier, in use or not, whatever the port. */
  isGatewayOf(carrierId: number, uri: string): boolean {
    const target = sipTarget(uri)
    if (target === undefined) return false
    if (isIP(target.host) !== 0) return this.#recognition.hasGatewayAt(carrierId, target.host)
    return this.#gateways.of(carrierId).some(({ host }) => plainHost(host) === target.host)
  }

  /**
   * Asks DNS, for a second at most, where URIs lead that are about to be written; see
   * `gatewayBehind`.
   */
  async lookUp(uris: readonly string[]): Promise<DnsAnswers> {
    const addressesOf = await this.#deps.hosts.lookUp(uris.flatMap(namesIn))
    return {
      gatewayLedTo: (uri, sender) => {
        this.#followHosts()
        return this.#guard.ledTo(uri, sender, addressesOf)
      },
      addressesOf: (uri) => namesIn(uri).flatMap(addressesOf),
    }
  }

  /**
   * Whether requests for a host name may go to an address that it was resolved to: a gateway
   * answers to the names of its carrier only, and one of the platform to no name of a tenant's
   * carrier.
   */
  mayReach(host: string, address: string, port: number): boolean {
    this.#followHosts()
    const owners = this.#guard.ownersOf(host)
    if (owners.length === 0) return !this.#guard.at({ address, port }, 'unknown')
    return owners.includes(null) || !this.#guard.isOfPlatform({ address, port })
  }

  /** The media rules of a carrier or an agent. */
  mediaOf(
    party: { readonly carrierId: number } | { readonly agentId: number },
  ): MediaRules | undefined {
    return 'agentId' in party
      ? this.#agents.mediaOf(party.agentId)
      : this.#carriers.get(party.carrierId)?.media
  }

  /** A number as the carrier sent it, rewritten by the carrier's rules. */
  inboundNumber(origin: Origin, number: string): string {
    const carrier = origin.kind === 'carrier' ? this.#carriers.get(origin.carrierId) : undefined
    return carrier ? carrier.numberRules.in(number) : number
  }

  /** Rules for INVITEs of a carrier; undefined: it has none. */
  headerRulesOf(carrierId: number): readonly CompiledRule[] | undefined {
    return this.#carriers.get(carrierId)?.headerRules?.in
  }

  /**
   * Whether a route refuses this caller a number that it has not dialled, such as the routing
   * number of a ported one.
   */
  isNumberBlocked(caller: OutboundCaller, number: string): boolean {
    return this.#outbound.blockOf(caller, this.dialledNumber(number), false) !== undefined
  }

  /** A number that is called, with `+` in place of an exit code. */
  dialledNumber(number: string): string {
    return international(number, this.#deps.exitCodes)
  }

  /**
   * The user of our Contact, which a carrier that we register with may call instead of a number.
   */
  registeredUser(origin: Origin): string | undefined {
    const carrier = origin.kind === 'carrier' ? this.#carriers.get(origin.carrierId) : undefined
    return carrier?.auth.type === 'register' ? (carrier.auth.username ?? undefined) : undefined
  }

  /**
   * The target of a call from outside or from a node: that of the called number, the carrier's own
   * set, an inbound route, or else the default set. `none`: an unknown source, or there is no set
   * at all. `tenantId` is the tenant of the phone or node that calls, `payer` the tenant of the
   * customer that pays: its default set takes calls without a route. `verification`: what a
   * carrier's call has proved.
   */
  inboundTarget(
    origin: Origin,
    calledNumber: string,
    domain: string,
    tenantId: number | null = tenantOf(origin),
    payer: number | null = null,
    verification?: Verification,
  ): InboundTarget | NumberDecision | DefaultTarget {
    if (origin.kind === 'unknown') return { kind: 'none' }
    const caller =
      origin.kind === 'carrier' ? origin : { carrierId: null, tenantId, inboundSetId: null }
    const byNumber = numberDecision(this.#deps.findNumber?.(calledNumber), caller.tenantId)
    if (byNumber !== undefined) return byNumber
    if (caller.inboundSetId !== null) return { kind: 'set', setId: caller.inboundSetId }
    const routed = this.#inbound.find(caller, calledNumber, domain, verification)
    if (routed) return routed
    const setId = this.#deps.defaultSetId(caller.tenantId ?? payer)
    return setId === undefined ? { kind: 'none' } : { kind: 'default', setId }
  }

  /** The agent of an inbound route; undefined: there is none, or it is switched off. */
  agent(agentId: number): AgentDecision | undefined {
    return this.#agents.find(agentId)
  }

  /** The agent that a number means to a caller of this tenant; see `Agents.dialled`. */
  dialledAgent(number: string, tenantId: number | null): AgentDecision | undefined {
    return this.#agents.dialled(number, tenantId)
  }

  /** A call to such a number is let in whatever the load, before it is known whose it is. */
  isEmergencyNumber(calledNumber: string): boolean {
    return this.#outbound.isEmergencyNumber(calledNumber)
  }

  /**
   * Whether an outbound route may take a number that a caller of this tenant dials, for any payer.
   */
  knowsNumber(calledNumber: string, tenantId: number | null): boolean {
    return !isName(calledNumber) && this.#outbound.knows(this.dialledNumber(calledNumber), tenantId)
  }

  /** Whether the platform has listed the number for this tenant. */
  ownsNumber(tenantId: number, number: string): boolean {
    return this.#tenancy.ownsNumber(tenantId, number)
  }

  /**
   * The numbers by which a call is priced and guarded, of what gateways would get of the one that a
   * caller dials. Empty: that one alone.
   */
  sentNumbers(dialled: string, caller: OutboundCaller): readonly string[] {
    if (isName(dialled) || !(this.#hasRewritingCarrier || this.#outbound.isRewriting)) return []
    const calledNumber = this.dialledNumber(dialled)
    const counted = new Set<string>()
    for (const route of this.#outbound.leading(caller, calledNumber)) {
      const carrier = this.#outboundCarrier(route)
      const sending = carrier && this.#sendingOf(carrier, route, caller, calledNumber)
      if (sending?.block !== undefined) continue
      for (const number of sending?.counted ?? []) counted.add(number)
    }
    const isPlain = counted.size === 1 && counted.has(calledNumber)
    return isPlain ? [] : [...counted]
  }

  /**
   * The gateways for a call to the outside, in order: none for a name. `tenantId` opens the routes
   * that a tenant shares among its customers and extensions. `only`: routes to other carriers are
   * as if they were not there, and those of the first one come first. `routingNumber`: of a ported
   * number.
   */
  outboundCandidates(
    customerId: number | null,
    dialled: string,
    tenantId: number | null = null,
    search: RouteSearch = this.#search,
    only?: readonly number[],
    routingNumber?: string,
  ): OutboundDecision {
    if (isName(dialled)) return { kind: 'none' }
    const { random, passOver, turns = this.#turns } = search
    const caller: OutboundCaller = { customerId, tenantId }
    const calledNumber = this.dialledNumber(dialled)
    const priceOf = this.#pricesOf(calledNumber)
    const taken = [caller, calledNumber, random, priceOf, passOver, turns.routes] as const
    const matched = this.#outbound.match(...taken)
    if (matched.kind === 'blocked') return { kind: 'blocked', routeName: matched.route.name }
    const routes = only === undefined ? matched.routes : routesOf(only, matched.routes)
    if (routes.length === 0) return { kind: 'none' }
    const isEmergency = matched.kind === 'emergency'
    const { isExplained = false } = search
    const sale = { caller, dialled, calledNumber, routingNumber, isEmergency, isExplained }
    const profits = this.#profitOf(sale)
    const shares = matched.kind === 'routes' && only === undefined ? matched.shares : undefined
    const routeOf = shares && new Map<GatewayCandidate, OutboundRouteRecord>()
    const gateways: GatewayCandidate[] = []
    let limit: string | undefined
    let block: OutboundRouteRecord | undefined
    let lacking: 'unprofitable' | 'unpriced' | undefined
    for (const route of routes) {
      const carrier = this.#outboundCarrier(route)
      if (!carrier) {
        passOver(passedRoute(route, 'no_carrier'))
        continue
      }
      const price = route.mode === 'lcr' ? (priceOf(route) ?? null) : undefined
      const sending = this.#sendingOf(carrier, route, caller, calledNumber)
      const profit = profits?.by({
        lossTerms: route.lossTerms,
        carrierTenantId: carrier.tenantId,
        priceOf: () => priceOf(route),
      })
      if (!isEmergency && sending.block !== undefined) {
        block ??= sending.block
        passOver(passedRoute(route, 'number_blocked'))
      } else if (!isEmergency && price?.isBlocked)
        passOver(passedRoute(route, 'blocked_by_carrier'))
      else if (!isEmergency && price === null && this.#prices.hasList(carrier)) {
        lacking ??= 'unpriced'
        passOver(passedRoute(route, 'no_carrier_price'))
      } else if (profit?.verdict === 'refused') {
        lacking = 'unprofitable'
        passOver(passedRoute(route, 'below_margin', profit))
      } else if (!isEmergency && this.#limits.isReached(carrier)) {
        limit = this.#limits.describe(carrier)
        passOver(passedRoute(route, 'carrier_limit'))
      } else {
        const { ratePlanId, tenantId: owner } = carrier
        const { number } = sending
        const bought = { number, dialled: calledNumber, ratePlanId, tenantId: owner }
        const isShown = isExplained || profit?.verdict === 'warned'
        const offer = { route, bought, price, isEmergency, ...(isShown && { profit }) }
        const offered = this.#gatewaysOf(carrier, offer, { random, passOver, turns })
        gateways.push(...offered)
        if (routeOf) for (const gateway of offered) routeOf.set(gateway, route)
      }
    }
    if (gateways.length > 0) {
      const inOrder = this.#provenFirst(gateways, only === undefined)
      const isInTurn =
        !isEmergency && this.#takeTurn(inOrder, { shares, routeOf, priceOf }, search.turns)
      const ordered = inOrder.slice(0, MAX_GATEWAYS)
      return {
        kind: 'gateways',
        gateways: ordered,
        isEmergency,
        ...(isInTurn && { isInTurn }),
      }
    }
    if (limit !== undefined) return { kind: 'limited', limit }
    return block ? { kind: 'blocked', routeName: block.name } : { kind: lacking ?? 'unavailable' }
  }

  /**
   * Earnings of a call by its carriers; undefined: nobody asks. Emergencies, and calls that nobody
   * pays for here, are not protected.
   */
  #profitOf(question: ProfitQuestion): CallProfit | undefined {
    const { caller, dialled, calledNumber, routingNumber, isEmergency, isExplained } = question
    const { sales, expectedSeconds, costOf } = this.#deps
    const { customerId } = caller
    const isSold = sales !== undefined && customerId !== null && !isEmergency
    if (!isSold && !isExplained) return undefined
    const terms = isSold ? sales.termsOf(customerId) : []
    if (terms.length === 0 && !this.#outbound.isProtecting && !isExplained) return undefined
    const expect = (): ExpectedCall => {
      const seconds = expectedSeconds(calledNumber)
      if (!isSold) return { seconds, sale: undefined }
      const sent = this.sentNumbers(dialled, caller)
      const tariff = sales.tariffOf(customerId, { calledNumber, sent, routingNumber })
      return { seconds, sale: tariff && { tariff, micros: costOf(tariff, seconds) } }
    }
    return new CallProfit({ terms, expect, isExplained })
  }

  /**
   * The gateway to which a carrier's 3xx may send a call, at the price of the dialled number; a
   * text: why there is none. Its number is the one that is given: no rule of the carrier changes
   * it.
   */
  redirected(call: RedirectedCall, target: RedirectTarget): GatewayCandidate | RedirectRefusal {
    const { caller, isEmergency, only } = call
    const dialled = this.dialledNumber(call.dialled)
    const number = this.dialledNumber(target.number)
    const isSent = isSameNumber(target.number, call.sent) && isSameNumber(call.sentFor, dialled)
    const isSame = isSent || isSameNumber(number, dialled)
    if (!isSame) {
      // The caller pays nothing for an emergency, and must not flood an emergency number.
      if (isEmergency || this.isEmergencyNumber(number)) return 'other_number'
      if (this.#isRefused(caller, number)) return 'number_blocked'
    }
    const { rn } = target
    // A block holds for a routing number, too, and an emergency is called by its own number.
    const isRefused =
      rn !== undefined && (this.#isRefused(caller, rn) || this.isEmergencyNumber(rn))
    if (isRefused) return 'number_blocked'
    const known = isSame ? dialled : number
    const matched = this.#outbound.match(caller, known, unweighted, () => undefined)
    if (matched.kind === 'blocked') return 'number_blocked'
    const { routingNumber } = call
    const sale = { caller, dialled: call.dialled, calledNumber: dialled, routingNumber }
    const profits = this.#profitOf({ ...sale, isEmergency, isExplained: false })
    let refusal: RedirectRefusal = 'unknown_gateway'
    for (const route of matched.routes) {
      const carrier = this.#outboundCarrier(route)
      if (carrier === undefined || only?.includes(carrier.carrierId) === false) continue
      // A tenant's redirect server chooses none of the platform's carriers.
      if (call.byTenantId !== null && carrier.tenantId !== call.byTenantId) continue
      const gateway = carrier.gateways.find(
        (each) =>
          isTargetOf(each, target) && this.#notUsable(carrier, each, isEmergency) === undefined,
      )
      if (gateway === undefined) continue
      const { ratePlanId, tenantId } = carrier
      const bought = { number: target.number, dialled: known, ratePlanId, tenantId }
      const price = this.#prices.expectedPrice(bought, dialled)
      const isBlocked = price?.isBlocked === true && !isEmergency
      const isDear = !isSame && !this.#prices.isNoDearer(price, carrier, dialled)
      const profit = profits?.by({
        lossTerms: route.lossTerms,
        carrierTenantId: tenantId,
        priceOf: () => price,
      })
      const isUnpriced =
        route.mode === 'lcr' && price === undefined && this.#prices.hasList(carrier)
      if (isBlocked) refusal = 'blocked_by_carrier'
      else if (isDear) refusal = 'dearer'
      else if (isUnpriced && !isEmergency) refusal = 'no_carrier_price'
      else if (profit?.verdict === 'refused') refusal = 'below_margin'
      else {
        const measuredBy = route.floors && !isEmergency ? route.routeId : undefined
        const isShown = profit?.verdict === 'warned'
        const offer = { routeName: route.name, bought, price: undefined, measuredBy }
        return candidateOf(carrier, gateway, { ...offer, ...(isShown && { profit }) })
      }
    }
    return refusal
  }

  /** Whether a route, or the plan of the payer, blocks a number that was not dialled. */
  #isRefused(caller: OutboundCaller, number: string): boolean {
    const { customerId } = caller
    if (this.isNumberBlocked(caller, number)) return true
    return customerId !== null && this.#deps.sales?.isBlocked(customerId, number) === true
  }

  /** Carriers that may take calls, by id or name. */
  carriersNamed(wanted: number | string): readonly CarrierRecord[] {
    return named(this.#carriers.values(), ({ carrierId }) => carrierId, wanted).filter(
      ({ isActive, direction }) => isActive && direction !== 'in',
    )
  }

  /** Agents that are switched on, by id or name. */
  agentsNamed(wanted: number | string): readonly AgentRecord[] {
    return named(this.#agents.all(), ({ agentId }) => agentId, wanted).filter(
      ({ isActive }) => isActive,
    )
  }

  /** Whether `admitCarrierCall` would let a call in; it is not counted. */
  hasRoom(carrierId: number): boolean {
    const carrier = this.#carriers.get(carrierId)
    return !carrier || !this.#limits.isReached(carrier)
  }

  /** The limits of a carrier that has refused a call. */
  limitOf(carrierId: number): string | undefined {
    const carrier = this.#carriers.get(carrierId)
    return carrier && this.#limits.describe(carrier)
  }

  /** A program of the platform as the source of a call; undefined: there is no trusted source. */
  trustedOrigin(): Origin | undefined {
    return this.#deps.trustedSources.length > 0 ? { kind: 'trusted' } : undefined
  }

  /**
   * A carrier as the source of a call, by its first gateway that may call; undefined: it may not
   * call.
   */
  carrierOrigin(carrierId: number): Origin | undefined {
    return this.#recognition.carrierOrigin(carrierId)
  }

  /**
   * Asked once for each call from a carrier and before each attempt to one: false when the carrier
   * has reached `max_calls` or `max_cps` (503 with `Retry-After`); else the call is counted. It may
   * take a tenth of a second where other instances have to be asked.
   */
  admitCarrierCall(carrierId: number, isEmergency = false): boolean | Promise<boolean> {
    const carrier = this.#carriers.get(carrierId)
    if (!carrier) return true
    if (!isEmergency) return this.#limits.admit(carrier)
    this.#limits.noteStart(carrier)
    return true
  }

  /** Asked before each attempt to call an agent: false when it has reached its `max_calls`. */
  admitAgentCall(agentId: number): boolean | Promise<boolean> {
    return this.#agents.admit(agentId)
  }

  /**
   * The live calls of carriers and agents are counted without being asked for, such as those of the
   * last run.
   */
  noteCalls(): void {
    for (const carrier of this.#carriers.values()) this.#limits.noteCalls(carrier)
    for (const { agentId, maxCalls } of this.#agents.all()) this.#agentLimit.note(agentId, maxCalls)
  }

  /** The credentials for a carrier; undefined: there is no such carrier any more. */
  carrierAuth(carrierId: number): CarrierAuth | undefined {
    return this.#carriers.get(carrierId)?.auth
  }

  #followHosts(): void {
    if (this.#deps.hosts.version !== this.#capVersion) this.#buildCap()
  }

  #buildCap(): void {
    const { hosts } = this.#deps
    this.#capVersion = hosts.version
    this.#guard = new GatewayGuard([...this.#gateways.all()], (host) => hosts.addressesOf(host))
  }

  /**
   * Gateways that answer come first, and those of routes that are below their floors last, unless a
   * hook has named the carriers.
   */
  #provenFirst(
    gateways: readonly GatewayCandidate[],
    isByQuality: boolean,
  ): readonly GatewayCandidate[] {
    const reachability = gateways.map(({ gatewayId }) => this.#deps.gatewayReachability(gatewayId))
    const ordered = (['up', 'unproven', 'down'] as const).flatMap((wanted) =>
      gateways.filter((_, index) => reachability[index] === wanted),
    )
    if (!isByQuality || !ordered.some((gateway) => this.#isLow(gateway))) return ordered
    return [
      ...ordered.filter((gateway) => !this.#isLow(gateway)),
      ...ordered.filter((gateway) => this.#isLow(gateway)),
    ]
  }

  #isLow({ measuredBy }: GatewayCandidate): boolean {
    return measuredBy !== undefined && this.#qualities.isLow(measuredBy)
  }

  /** Nearly every call: nothing is shared in turn. */
  #takeTurn(
    gateways: readonly GatewayCandidate[],
    shared: Pick<Parameters<typeof takeTurn>[0], 'shares' | 'routeOf' | 'priceOf'>,
    turns: AllTurns | undefined,
  ): boolean {
    const [first] = gateways
    const carrier = first && this.#carriers.get(first.carrierId)
    if (first === undefined || (shared.shares === undefined && !carrier?.distribution)) return false
    const { gatewayReachability } = this.#deps
    const reachability = gatewayReachability(first.gatewayId)
    const isLow = this.#isLow(first)
    const isEqual = (gateway: GatewayCandidate): boolean =>
      gatewayReachability(gateway.gatewayId) === reachability && this.#isLow(gateway) === isLow
    return takeTurn({ ...shared, gateways, isEqual, carrier }, turns)
  }

  /** Counts an attempt at a gateway whose outcome is known; see `measuredBy`. */
  noteAttempt(
    { measuredBy, carrierId }: MeasuredDestination,
    isAnswered: boolean,
    delayMs: number | null,
  ): void {
    if (measuredBy !== undefined)
      this.#qualities.addAttempt(measuredBy, carrierId, isAnswered, delayMs)
  }

  /** Counts an answered call that has ended. */
  noteTalk({ measuredBy, carrierId }: MeasuredDestination, talkMs: number): void {
    if (measuredBy !== undefined) this.#qualities.addTalk(measuredBy, carrierId, talkMs)
  }

  /** How the carrier of a route does; undefined: it has no floors. */
  qualityOf(routeId: number): RouteQualityStatus | undefined {
    const status = this.#qualities.status(routeId)
    return status && this.#named(status)
  }

  /** The same for all routes that have floors. */
  qualities(): readonly RouteQualityStatus[] {
    return this.#qualities.all().map((status) => this.#named(status))
  }

  /** The turns of the next calls, for calls that are not made. */
  turns(): AllTurns {
    const { routes, gateways } = this.#turns
    return { routes: routes.copy(), gateways: gateways.copy() }
  }

  #named(status: QualityStatus): RouteQualityStatus {
    const carrier = this.#carriers.get(status.carrierId)?.name
    return { ...status, carrier: carrier ?? `carrier ${status.carrierId}` }
  }

  /** Price of a carrier for a call that it answers at `at`; undefined: it is not known. */
  boughtPrice(bought: BoughtNumber, at: number): BoughtPrice | undefined {
    const price = this.#prices.priceOf(bought, at)
    if (price === undefined || price.isBlocked) return undefined
    const { number, dialled, tenantId } = bought
    const { tariff } = price
    return number === dialled ? { tariff, tenantId } : { tariff, tenantId, number }
  }

  /** Looks up the price of a route once, however often it is asked for. */
  #pricesOf(calledNumber: string): PriceOf {
    const known = new Map<OutboundRouteRecord, RoutePrice | undefined>()
    return (route) => {
      if (known.has(route)) return known.get(route)
      const carrier = this.#outboundCarrier(route)
      const { ratePlanId = null } = carrier ?? {}
      const price =
        carrier === undefined || ratePlanId === null
          ? undefined
          : this.#prices.expectedPrice(
              {
                number: this.#sent(carrier, route, calledNumber),
                dialled: calledNumber,
                ratePlanId,
              },
              calledNumber,
            )
      known.set(route, price)
      return price
    }
  }

  #sent(carrier: CarrierRecord, route: OutboundRouteRecord, calledNumber: string): string {
    return carrier.numberRules.out(rewriteByRoute(route, calledNumber, this.#deps.exitCodes))
  }

  #sendingOf(
    carrier: CarrierRecord,
    route: OutboundRouteRecord,
    caller: OutboundCaller,
    calledNumber: string,
  ): SentNumber {
    const number = this.#sent(carrier, route, calledNumber)
    if (number === calledNumber) return { number, counted: [number], block: undefined }
    const counted = countedNumbers(number, calledNumber, this.#deps.exitCodes)
    const isDialled = digitsOf(calledNumber).endsWith(digitsOf(number))
    const blocks = counted
      .filter((each) => each !== calledNumber)
      .map((each) => this.#outbound.blockOf(caller, each, isDialled))
    return { number, counted, block: blocks.find((route) => route !== undefined) }
  }

  #outboundCarrier(route: OutboundRouteRecord): CarrierRecord | undefined {
    const carrier = route.carrierId === null ? undefined : this.#carriers.get(route.carrierId)
    return carrier?.isActive === true && carrier.direction !== 'in' ? carrier : undefined
  }

  #gatewaysOf(
    carrier: CarrierRecord,
    { route, bought, price, profit, isEmergency }: Offer,
    { random, passOver, turns }: RouteSearch,
  ): GatewayCandidate[] {
    if (bought.number === '') {
      passOver(passedRoute(route, 'number_stripped'))
      return []
    }
    const usable = carrier.gateways.filter((gateway) => {
      const why = this.#notUsable(carrier, gateway, isEmergency)
      if (why !== undefined) passOver(passedGateway(carrier, gateway, why))
      return why === undefined
    })
    const { distribution = 'weight' } = carrier
    const drawn = orderByPreference(usable, random)
    const ordered =
      distribution === 'weight' || turns === undefined || isEmergency
        ? drawn
        : gatewaysInTurn(drawn, distribution, turns.gateways)
    const measuredBy = route.floors && !isEmergency ? route.routeId : undefined
    return ordered.map((gateway) =>
      candidateOf(carrier, gateway, { routeName: route.name, bought, price, profit, measuredBy }),
    )
  }

  #notUsable(
    { tenantId }: CarrierRecord,
    gateway: GatewayRecord,
    isEmergency: boolean,
  ): PassedOver['why'] | undefined {
    if (!gateway.isOutbound) return 'inbound_only'
    // Probes may be wrong, and an emergency has nothing to lose.
    if (!isEmergency && this.#deps.gatewayReachability(gateway.gatewayId) === 'down')
      return 'gateway_down'
    return tenantId !== null && this.#recognition.leadsToPlatform(gateway)
      ? 'leads_to_platform'
      : undefined
  }
}

/** Chance changes the order of routes alone. */
const unweighted = (): number => 0

const isSameNumber = (one: string, other: string): boolean => digitsOf(one) === digitsOf(other)

function gatewaysInTurn(
  drawn: readonly GatewayRecord[],
  distribution: Distribution,
  turns: Turns,
): readonly GatewayRecord[] {
  const standing = ({ gatewayId, weight }: GatewayRecord): number =>
    turns.standing(sharingOf(gatewayId, weight, distribution))
  return drawn.toSorted(
    (one, other) =>
      one.priority - other.priority ||
      standing(other) - standing(one) ||
      one.gatewayId - other.gatewayId,
  )
}

/** The routes to these carriers, in their order. */
const routesOf = (
  carrierIds: readonly number[],
  routes: readonly OutboundRouteRecord[],
): readonly OutboundRouteRecord[] =>
  [...new Set(carrierIds)].flatMap((carrierId) =>
    routes.filter((route) => route.carrierId === carrierId),
  )

/** The number that the gateways of a route get. */
interface SentNumber {
  readonly number: string
  /** The numbers by which the call is priced and guarded. */
  readonly counted: readonly string[]
  /** The route that refuses one of them. */
  readonly block: OutboundRouteRecord | undefined
}

/** A gateway that was called. */
type MeasuredDestination = Pick<GatewayCandidate, 'carrierId' | 'measuredBy'>

interface Offer {
  readonly route: OutboundRouteRecord
  readonly bought: BoughtNumber
  readonly price: RoutePrice | null | undefined
  readonly profit?: ExpectedProfit | undefined
  readonly isEmergency: boolean
}

/** A call of which it is asked what it would earn. */
interface ProfitQuestion {
  readonly caller: OutboundCaller
  readonly dialled: string
  /** The number after exit codes. */
  readonly calledNumber: string
  readonly routingNumber: string | undefined
  readonly isEmergency: boolean
  readonly isExplained: boolean
}

/** An id names one; a name, in any case, may be that of several tenants' records. */
function named<T extends { readonly name: string }>(
  records: Iterable<T>,
  idOf: (record: T) => number,
  wanted: number | string,
): readonly T[] {
  const name = typeof wanted === 'string' ? wanted.toLowerCase() : undefined
  const found: T[] = []
  for (const record of records)
    if (name === undefined ? idOf(record) === wanted : record.name.toLowerCase() === name)
      found.push(record)
  return found
}

function namesIn(uri: string): readonly string[] {
  const target = sipTarget(uri)
  return target === undefined ? [] : namesBehind(target)
}

const tenantOf = (origin: Origin): number | null =>
  origin.kind === 'extension' ? origin.tenantId : null

/** Ends after each slice of them. */
function* sliced<T>(items: readonly T[], take: (item: T) => void): Generator<void> {
  for (const [index, item] of items.entries()) {
    take(item)
    if (index % SLICE === SLICE - 1) yield
  }
}

export interface RoutingDeps extends RecognitionDeps, BoughtPricesDeps {
  readonly hosts: RecognitionDeps['hosts'] & {
    watch(owner: string, hosts: readonly string[]): void
    lookUp(hosts: readonly string[]): Promise<AddressesOf>
  }
  /** All rows, or those of one table that have changed. */
  readonly load: (changed?: ChangedRouting) => Promise<RoutingRecords>
  /** The default of the sets that a tenant's caller may reach; null: a caller of no tenant. */
  readonly defaultSetId: (tenantId: number | null) => number | undefined
  /** Live calls of a carrier, counted at each call. */
  readonly activeCarrierCalls: (carrierId: number) => number
  /** Live calls of an AI agent. */
  readonly activeAgentCalls: (agentId: number) => number
  /** As probes have it: `unproven` gateways come after all others, `down` ones get no calls. */
  readonly gatewayReachability: (gatewayId: number) => 'up' | 'unproven' | 'down'
  /** Prices of customers. Absent: they are not known here, and nothing protects from losses. */
  readonly sales?: Sales | undefined
  /** The carriers as they are from now on. */
  readonly onLoaded: (carriers: readonly CarrierRecord[]) => void
  /** A row that cannot be used, in one sentence. */
  readonly onProblem: (problem: string) => void
  /** Finds the row of a telephone number. Absent: no number has one. */
  readonly findNumber?: (number: string) => CalledNumber | undefined
  readonly now: () => number
  readonly random: () => number
  /** A route has become low, or is restored. Absent: nobody is told. */
  readonly onQuality?: (change: QualityChange, status: RouteQualityStatus) => void
  /** Calls back at a time of the steady clock. */
  readonly at?: RouteQualitiesDeps['at']
  /** Where other instances count against the same limits. */
  readonly shared?: SharedCounting | undefined
}
