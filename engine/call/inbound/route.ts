/** Routes a call: candidates in order from routing and dispatcher, or a refusal. */
import { type NumberParameters, parametersOf } from './number-parameters.ts'
import type { CallRecord } from '../../../schema/contracts/call-record.ts'
import type { Account } from '../../../schema/contracts/charging.ts'
import { type End, noCandidate, type CallRefusal, refused as refusal } from '../cdr/end-reason.ts'
import {
  type DomainCandidate,
  type ListenerCandidate,
  type OtherInstanceCandidate,
  type PhoneCandidate,
  type SpyCandidate,
  type VoicemailCandidate,
  type GatewayBehind,
  gatewayBehindPhone,
  withoutPhone,
} from '../dialing/outgoing-invite.ts'
import type { VerifiedCaller } from '../stir/verified-caller.ts'
import type { ApplicationCandidate } from '../application/application-runs.ts'
import type { Candidate } from '../../dispatcher/destination-set.ts'
import type { Dispatcher } from '../../dispatcher/dispatcher.ts'
import type { Registrar } from '../../registrar/registrar.ts'
import type { ContactTarget } from '../../registrar/bindings.ts'
import type { AgentCandidate, AgentDecision } from '../../routing/agents.ts'
import type { InboundTarget } from '../../routing/routing-records.ts'
import type { GatewayCandidate, Origin, OutboundDecision, Routing } from '../../routing/routing.ts'
import { bracketed, plainHost } from '../../../schema/sip/index.ts'
import type { Verification } from '../../../schema/contracts/stir.ts'
import { isName } from '../../../schema/rules/numbers.ts'

export type CallDestination =
  | (Candidate | GatewayCandidate | AgentCandidate)
  | (ExtensionDestination | DomainCandidate | SpyCandidate | ListenerCandidate)
  | (OtherInstanceCandidate | ApplicationCandidate)

/** A destination that was reached, as far as its call needs to know it when it has answered. */
export type Reached =
  | Candidate
  | Pick<ExtensionDestination, 'kind' | 'uri' | 'tenantId'>
  | Pick<GatewayCandidate, 'kind' | 'carrierId' | 'measuredBy'>
  | Pick<AgentCandidate | DomainCandidate | SpyCandidate, 'kind' | 'tenantId'>
  | Pick<OtherInstanceCandidate | ListenerCandidate, 'kind'>
  | Pick<ApplicationCandidate, 'kind' | 'run'>

/** A destination that is asked whether it takes one more call before it is tried. */
export type LimitedDestination = Extract<
  CallDestination,
  { readonly kind: 'gateway' | 'node' | 'agent' }
>

export interface RouteDeps {
  readonly routing: Pick<
    Routing,
    | 'inboundNumber'
    | 'dialledNumber'
    | 'sentNumbers'
    | 'registeredUser'
    | 'inboundTarget'
    | 'outboundCandidates'
    | 'isEmergencyNumber'
    | 'agent'
    | 'dialledAgent'
    | 'knowsNumber'
    | 'headerRulesOf'
    | 'isNumberBlocked'
  >
  readonly dispatcher: Pick<
    Dispatcher,
    'candidates' | 'isAtCapacity' | 'reportOutcome' | 'setRecord'
  >
  readonly registrar: Pick<Registrar, 'extensionAt' | 'tenantOf' | 'contactsOf' | 'homeDomain'>
  readonly gatewayBehind: GatewayBehind
  /** The voicemail of a tenant's PBX; undefined: there is none. */
  readonly voicemailOf: (tenantId: number) => string | undefined
  readonly domains: DialledHosts
  /** The `Retry-After` of a refusal because a limit is reached. */
  readonly retryAfterSeconds: number
}

/** Hosts in Request-URIs that are not the domain of a tenant, in lower case and without port. */
export interface DialledHosts {
  /** A name or an address of ours. */
  isOwn(host: string): boolean
  /** Phones may call there by DNS. */
  isAllowed(host: string): boolean
}

/** The facts on which a route depends. */
export interface RouteQuestion {
  readonly origin: Origin
  readonly calledNumber: string
  /** Host of the Request-URI. */
  readonly domain: string
  readonly callId: string
  /** Parameters of the called number. */
  readonly ported?: NumberParameters | undefined
  /** A hook has chosen where the call goes. Absent: the number says it. */
  readonly target?: ChosenTarget | undefined
  /** The proof that Identity headers give; absent: nobody has looked at them. */
  readonly verified?: VerifiedCaller | undefined
}

/**
 * Where a hook, or an application by its URI, sends a call, of what its source and the payer may
 * reach.
 */
export type ChosenTarget =
  /** `nodeId`: this node of it alone. */
  | { readonly kind: 'set'; readonly setId: number; readonly nodeId?: number }
  | ChosenCarriers
  | { readonly kind: 'extension'; readonly extension: string; readonly domain: string }
  | { readonly kind: 'agent'; readonly agentId: number }
  /** At the price of the called number. */
  | { readonly kind: 'uri'; readonly candidate: DomainCandidate }

/** The gateways of these carriers, the first one's first, at the price of the called number. */
export interface ChosenCarriers {
  readonly kind: 'carriers'
  readonly carrierIds: readonly number[]
  /** Who has chosen them, and by which names; for trace and findings. */
  readonly chosenBy?: {
    readonly by: string
    readonly tenantId: number | null
    readonly names: readonly (number | string)[]
  }
}

export type Route =
  | {
      readonly kind: 'candidates'
      readonly direction: CallRecord['direction']
      readonly candidates: readonly CallDestination[]
      /** The end that the caller gets when none of them takes the call. Absent: 503. */
      readonly otherwise?: End
    }
  | { readonly kind: 'refused'; readonly direction: CallRecord['direction']; readonly end: End }

/**
 * The gateways of an emergency number dialled on our own side; undefined for any other call. Such a
 * call asks no wallet, no limit and no drain.
 */
export function emergencyRoute(question: RouteQuestion, deps: RouteDeps): Route | undefined {
  const { origin, calledNumber } = question
  // Candidates are drawn once for each call: only such a number has them drawn here.
  if (!isOurSide(origin) || !deps.routing.isEmergencyNumber(calledNumber)) return undefined
  const decision = deps.routing.outboundCandidates(null, calledNumber, tenantOf(origin, deps))
  return decision.kind === 'gateways' && decision.isEmergency
    ? { kind: 'candidates', direction: 'outbound', candidates: decision.gateways }
    : undefined
}

/** The route of a call inside the tenant, which is not charged. */
export interface InnerRoute {
  readonly route: Route
  readonly tenantId: number | null
}

/**
 * The route of a call from a phone or node to an extension or agent of its tenant. Undefined: any
 * other call.
 */
export function innerRoute(question: RouteQuestion, deps: RouteDeps): InnerRoute | undefined {
  const { origin, calledNumber, domain, target } = question
  const tenantId = tenantOf(origin, deps)
  if (target !== undefined) return innerTarget(target, origin, deps)
  const foreign = foreignDomain(question, deps)
  if (foreign !== undefined)
    return deps.domains.isAllowed(foreign) ? undefined : { route: toForeign(foreign), tenantId }
  const extension = innerExtension(origin, calledNumber, domain, deps)
  if (extension && !isForeign(extension.tenantId, tenantId)) {
    const route = { kind: 'candidates', direction: 'internal', candidates: [extension] } as const
    return { route, tenantId: extension.tenantId }
  }
  if (!isOurSide(origin)) return undefined
  // The same answer for every number, and for an unknown domain: callers cannot probe other
  // tenants.
  const owner = origin.kind === 'extension' ? deps.registrar.tenantOf(domain) : undefined
  if (isForeign(owner ?? null, tenantId))
    return { route: refused('outbound', 404, 'Not Found', 'foreign_domain'), tenantId }
  const agent = deps.routing.dialledAgent(calledNumber, tenantId)
  return agent && { route: agentRoute(agent, 'internal', deps), tenantId }
}

/** An extension or agent that a hook has chosen is free for those who could have dialled it. */
function innerTarget(
  target: ChosenTarget,
  origin: Origin,
  deps: RouteDeps,
): InnerRoute | undefined {
  const tenantId = tenantOf(origin, deps)
  if (!isOurSide(origin)) return undefined
  if (target.kind === 'agent')
    return { route: agentTarget(target.agentId, tenantId, 'internal', deps), tenantId }
  if (target.kind !== 'extension') return undefined
  const route = extensionTarget(target, tenantId, 'internal', deps)
  const owner = deps.registrar.tenantOf(target.domain)
  return { route, tenantId: tenantId ?? owner ?? null }
}

function extensionTarget(
  { extension: number, domain }: Extract<ChosenTarget, { readonly kind: 'extension' }>,
  tenant: number | null,
  direction: CallRecord['direction'],
  deps: RouteDeps,
): Route {
  const extension = extensionAt(domain, number, deps)
  return extension === undefined || isForeign(extension.tenantId, tenant)
    ? { kind: 'refused', direction, end: noExtension(number) }
    : { kind: 'candidates', direction, candidates: [extension] }
}

function agentTarget(
  agentId: number,
  tenant: number | null,
  direction: CallRecord['direction'],
  deps: RouteDeps,
): Route {
  const decision = deps.routing.agent(agentId)
  const isOthers = decision?.kind === 'agent' && isForeign(decision.agent.tenantId, tenant)
  return agentRoute(isOthers ? undefined : decision, direction, deps)
}

/**
 * A call that leads nowhere for any payer is refused before authorization (SPECIFICATION.md §10.2).
 * Undefined: it may go somewhere.
 */
export function deadEnd(question: RouteQuestion, deps: RouteDeps): InnerRoute | undefined {
  const { origin, calledNumber, domain } = question
  const tenantId = tenantOf(origin, deps)
  const isOut = isOurSide(origin)
  if (isOut && isKnownOutside(question, deps)) return undefined
  const direction = isOut ? 'internal' : 'inbound'
  if (question.target) {
    const route = deadTarget(question.target, tenantId, direction, deps)
    return route && { route, tenantId }
  }
  if (namedRoute(question, tenantId, direction, deps)) return undefined
  const proved = provedOf(question)
  const target = deps.routing.inboundTarget(origin, calledNumber, domain, tenantId, null, proved)
  const ending = (end: End): InnerRoute => ({
    route: { kind: 'refused', direction, end },
    tenantId,
  })
  if (target.kind === 'inactive_number') return ending(inactiveNumber(calledNumber))
  if (target.kind === 'extension') {
    const extension = routedExtension(target, domain, deps)
    if (extension === undefined) return ending(noExtension(target.extension))
    const { phones, voicemail } = extension
    if (phones.length > 0 || voicemail !== undefined) return undefined
    return ending({ ...withoutPhone(extension), detail: about('extension', target.extension) })
  }
  if (target.kind === 'agent' && deps.routing.agent(target.agentId) === undefined)
    return ending(noAgent(target.agentId))
  if (target.kind === 'set' && isForeign(ownerOf(target.setId, deps), tenantId))
    return ending(asUnknown(direction, calledNumber))
  // A caller of no tenant may still mean an agent of the tenant that pays.
  const isNowhere = target.kind === 'none' && isOut && tenantId !== null
  return isNowhere ? ending(nowhere(calledNumber)) : undefined
}

/** Undefined: nobody has looked at signatures, or it is not the carrier who calls. */
const provedOf = ({ origin, verified }: RouteQuestion): Verification | undefined =>
  origin.kind === 'carrier' ? verified?.verification : undefined

/** The refusal of a chosen target that no payer reaches; undefined: it may be reached. */
function deadTarget(
  target: ChosenTarget,
  tenant: number | null,
  direction: CallRecord['direction'],
  deps: RouteDeps,
): Route | undefined {
  switch (target.kind) {
    case 'extension': {
      const route = extensionTarget(target, tenant, direction, deps)
      const [called] = route.kind === 'candidates' ? route.candidates : []
      if (called?.kind !== 'extension') return route
      if (called.phones.length > 0 || called.voicemail !== undefined) return undefined
      const detail = about('extension', target.extension)
      return { kind: 'refused', direction, end: { ...withoutPhone(called), detail } }
    }
    case 'agent': {
      const route = agentTarget(target.agentId, tenant, direction, deps)
      return route.kind === 'refused' ? route : undefined
    }
    case 'set':
    case 'carriers':
    case 'uri':
    default:
      return undefined
  }
}

/** A longer number, or one with `+`, cannot be an extension. */
const MAX_EXTENSION_DIGITS = 6

/** Why a call ends whose number neither an extension nor an outbound route has. */
export function nowhere(calledNumber: string): CallRefusal {
  const isOutside = calledNumber.startsWith('+') || calledNumber.length > MAX_EXTENSION_DIGITS
  return isOutside && isNumber(calledNumber)
    ? refusal(404, 'Not Found', 'no_route', undefined, about('number', calledNumber))
    : noExtension(calledNumber)
}

const noExtension = (extension: string): CallRefusal =>
  refusal(404, 'Not Found', 'unknown_extension', undefined, about('extension', extension))

const inactiveNumber = (called: string): CallRefusal =>
  refusal(404, 'Not Found', 'number_inactive', undefined, about('number', called))

const noAgent = (agentId?: number): CallRefusal =>
  refusal(
    404,
    'Not Found',
    'unknown_agent',
    undefined,
    agentId === undefined ? undefined : `agent ${agentId}`,
  )

const isNumber = (called: string): boolean => /^\+?[\d*#]+$/.test(called)

/** A name is what a caller has written: no sentence repeats it. */
const about = (kind: 'extension' | 'number', called: string): string | undefined =>
  isNumber(called) ? `${kind} ${called}` : undefined

/**
 * Whether a route leads a number of our own side to the outside, or DNS the domain that was
 * dialled.
 */
export const isKnownOutside = (question: RouteQuestion, deps: RouteDeps): boolean =>
  isOutsideTarget(question.target) ||
  foreignDomain(question, deps) !== undefined ||
  deps.routing.knowsNumber(question.calledNumber, tenantOf(question.origin, deps))

const isOutsideTarget = (target: ChosenTarget | undefined): boolean =>
  target?.kind === 'carriers' || target?.kind === 'uri'

/**
 * The foreign domain that a phone dials; undefined: it dials one of ours. In requests of a carrier
 * or node the host is only an address; a phone that dials a domain means it.
 */
function foreignDomain({ origin, domain }: RouteQuestion, deps: RouteDeps): string | undefined {
  if (origin.kind !== 'extension' && origin.kind !== 'application') return undefined
  if (domain === '') return undefined
  const host = plainHost(domain)
  const isOurs = deps.registrar.tenantOf(host) !== undefined || deps.domains.isOwn(host)
  return isOurs ? undefined : host
}

/** The tenant of a phone or node; null: it belongs to none, or to all. */
export function tenantOf(
  origin: Origin,
  { dispatcher }: Pick<RouteDeps, 'dispatcher'>,
): number | null {
  if (origin.kind === 'node') return dispatcher.setRecord(origin.setId)?.tenantId ?? null
  return 'tenantId' in origin ? origin.tenantId : null
}

/** The tenant that a proxy calls for: the payer's, or the only one that it serves. */
export function servedTenant(origin: Origin, account: Account | null): number | null {
  if (origin.kind !== 'proxy') return null
  const [only, ...others] = origin.tenantIds
  const payer = account?.tenantId ?? (others.length === 0 ? only : undefined)
  return payer !== undefined && origin.tenantIds.includes(payer) ? payer : null
}

/**
 * Whether a resource of one tenant is out of reach for a caller of another. Null: it belongs to
 * all.
 */
const isForeign = (owner: number | null, tenant: number | null): boolean =>
  owner !== null && tenant !== null && owner !== tenant

/**
 * A trunk's call goes in; a phone's or a node's goes out where a route knows the number
 * (SPECIFICATION.md §10.2).
 */
export function routeCall(
  question: RouteQuestion,
  account: Account | null,
  deps: RouteDeps,
): Route {
  const { origin, calledNumber, target } = question
  if (target !== undefined) return targetRoute(target, question, account, deps)
  if (!isOurSide(origin)) return inward(question, 'inbound', account, deps)
  const foreign = foreignDomain(question, deps)
  if (foreign !== undefined) return domainRoute(foreign, origin, deps)
  const payer = account?.customerId ?? null
  const tenant = tenantOf(origin, deps) ?? account?.tenantId ?? null
  const blocked = blockedRoutingNumber(question, payer, tenant, deps)
  if (blocked) return blocked
  const { rn } = parametersOf(question) ?? {}
  const query = [payer, calledNumber, tenant, undefined, undefined, rn] as const
  const decision = deps.routing.outboundCandidates(...query)
  const outbound = outboundRoute(decision, calledNumber, deps)
  return outbound ?? inward(question, 'internal', account, deps)
}

/** The route to what a hook has chosen: the payer decides for whom a proxy calls. */
function targetRoute(
  target: ChosenTarget,
  question: RouteQuestion,
  account: Account | null,
  deps: RouteDeps,
): Route {
  const { origin } = question
  const direction = isOurSide(origin) ? 'internal' : 'inbound'
  const tenant = servedTenant(origin, account) ?? tenantOf(origin, deps)
  if (tenant === null && origin.kind === 'proxy')
    return refused(direction, 403, 'Forbidden', 'no_payer')
  switch (target.kind) {
    case 'set':
      return setRoute(target, question, tenant, direction, deps)
    case 'extension':
      return extensionTarget(target, tenant, direction, deps)
    case 'agent':
      return agentTarget(target.agentId, tenant, direction, deps)
    case 'carriers':
      return carriersRoute(target.carrierIds, question, account, deps)
    case 'uri':
    default:
      return { kind: 'candidates', direction: 'outbound', candidates: [target.candidate] }
  }
}

/**
 * The gateways of these carriers, by the routes of the payer. A call from outside that nobody pays
 * for may come in, and does not go out again.
 */
function carriersRoute(
  carrierIds: readonly number[],
  question: RouteQuestion,
  account: Account | null,
  deps: RouteDeps,
): Route {
  const { origin, calledNumber } = question
  const isPaid = account !== null && (account.customerId !== null || account.ratePrefix !== null)
  if (!isOurSide(origin) && !isPaid) return refused('outbound', 403, 'Forbidden', 'no_payer')
  const payer = account?.customerId ?? null
  const tenant = tenantOf(origin, deps) ?? account?.tenantId ?? null
  const blocked = blockedRoutingNumber(question, payer, tenant, deps)
  if (blocked) return blocked
  const { rn } = parametersOf(question) ?? {}
  const query = [payer, calledNumber, tenant, undefined, carrierIds, rn] as const
  const route = outboundRoute(deps.routing.outboundCandidates(...query), calledNumber, deps)
  const called = about('number', calledNumber)
  return route ?? refused('outbound', 404, 'Not Found', 'no_route', called)
}

/** Routes go by the dialled number (D369); a block holds for the routing number, too. */
function blockedRoutingNumber(
  question: RouteQuestion,
  customerId: number | null,
  tenantId: number | null,
  { routing }: RouteDeps,
): Route | undefined {
  const { rn } = parametersOf(question) ?? {}
  if (rn === undefined || !routing.isNumberBlocked({ customerId, tenantId }, rn)) return undefined
  return refused('outbound', 403, 'Forbidden', 'destination_blocked', `routing number ${rn}`)
}

/** Undefined: no outbound route knows the number. */
export function outboundRoute(
  decision: OutboundDecision,
  calledNumber: string,
  deps: RouteDeps,
): Route | undefined {
  const called = about('number', calledNumber)
  switch (decision.kind) {
    case 'gateways':
      return { kind: 'candidates', direction: 'outbound', candidates: decision.gateways }
    case 'blocked':
      return refused('outbound', 403, 'Forbidden', 'destination_blocked', called)
    case 'limited': {
      const { limit } = decision
      return refused('outbound', 503, 'Service Unavailable', 'carrier_limit', limit, deps)
    }
    case 'unprofitable':
      return refused('outbound', 503, 'Service Unavailable', 'no_profit', called)
    case 'unpriced':
      return refused('outbound', 503, 'Service Unavailable', 'no_carrier_price', called)
    case 'unavailable':
      return refused('outbound', 503, 'Service Unavailable', 'no_gateway', called)
    case 'none':
    default:
      return undefined
  }
}

/** A route by DNS, at the price of the number, if the operator has allowed the domain. */
function domainRoute(domain: string, origin: Origin, deps: RouteDeps): Route {
  if (!deps.domains.isAllowed(domain)) return toForeign(domain)
  const tenantId = tenantOf(origin, deps)
  const candidates = [{ kind: 'domain', uri: `sip:${bracketed(domain)}`, tenantId }] as const
  return { kind: 'candidates', direction: 'outbound', candidates }
}

const toForeign = (domain: string): Route =>
  refused('outbound', 404, 'Not Found', 'foreign_domain', `domain ${domain}`)

function inward(
  question: RouteQuestion,
  direction: CallRecord['direction'],
  account: Account | null,
  deps: RouteDeps,
): Route {
  const { origin, calledNumber, domain } = question
  const tenant = servedTenant(origin, account) ?? tenantOf(origin, deps)
  // A proxy serves several tenants: the payer decides which one calls.
  if (tenant === null && origin.kind === 'proxy')
    return refused(direction, 403, 'Forbidden', 'no_payer')
  const payer = account?.tenantId ?? null
  const named = namedRoute(question, tenant ?? payer, direction, deps)
  if (named) return named
  const proved = provedOf(question)
  const target = deps.routing.inboundTarget(origin, calledNumber, domain, tenant, payer, proved)
  switch (target.kind) {
    case 'set':
      return setRoute(target, question, tenant, direction, deps)
    case 'extension': {
      const extension = routedExtension(target, domain, deps)
      return extension
        ? { kind: 'candidates', direction, candidates: [extension] }
        : { kind: 'refused', direction, end: noExtension(target.extension) }
    }
    case 'agent':
      return agentRoute(deps.routing.agent(target.agentId), direction, deps)
    case 'inactive_number':
      return { kind: 'refused', direction, end: inactiveNumber(calledNumber) }
    case 'default':
    case 'none':
    default: {
      const tenantId = tenant ?? account?.tenantId ?? null
      const agent = deps.routing.dialledAgent(calledNumber, tenantId)
      if (agent) return agentRoute(agent, direction, deps)
      return target.kind === 'none'
        ? { kind: 'refused', direction, end: { ...noCandidate, detail: NO_SET } }
        : setRoute(target, question, tenant, direction, deps)
    }
  }
}

/**
 * The route to the extension or agent with this name. Undefined: there is none, or a number is
 * called.
 */
function namedRoute(
  { calledNumber, domain }: RouteQuestion,
  tenant: number | null,
  direction: CallRecord['direction'],
  deps: RouteDeps,
): Route | undefined {
  if (!isName(calledNumber)) return undefined
  const extension = extensionAt(plainHost(domain), calledNumber, deps)
  if (extension && !isForeign(extension.tenantId, tenant))
    return { kind: 'candidates', direction, candidates: [extension] }
  const agent = deps.routing.dialledAgent(calledNumber, tenant)
  return agent && agentRoute(agent, direction, deps)
}

const NO_SET = 'there is no dispatcher set for it'

function setRoute(
  { setId, nodeId }: { readonly setId: number; readonly nodeId?: number },
  { callId, calledNumber }: RouteQuestion,
  tenant: number | null,
  direction: CallRecord['direction'],
  deps: RouteDeps,
): Route {
  if (isForeign(ownerOf(setId, deps), tenant))
    return { kind: 'refused', direction, end: asUnknown(direction, calledNumber) }
  const ofSet = deps.dispatcher.candidates(setId, callId)
  const candidates = nodeId === undefined ? ofSet : ofSet.filter((each) => each.nodeId === nodeId)
  if (candidates.length > 0) return { kind: 'candidates', direction, candidates }
  const detail = `dispatcher set ${setId}${nodeId === undefined ? '' : `, node ${nodeId}`}`
  const { status, reason } = noCandidate
  const end = deps.dispatcher.isAtCapacity(setId)
    ? { ...refusal(status, reason, 'node_limit', retryAfter(deps), detail), setId }
    : { ...noCandidate, detail }
  return { kind: 'refused', direction, end }
}

const ownerOf = (setId: number, { dispatcher }: RouteDeps): number | null =>
  dispatcher.setRecord(setId)?.tenantId ?? null

/**
 * For a set of another tenant: the same answer as for an unknown number, so that callers cannot
 * probe other tenants.
 */
const asUnknown = (direction: CallRecord['direction'], calledNumber: string): End =>
  direction === 'inbound' ? { ...noCandidate, detail: NO_SET } : nowhere(calledNumber)

function agentRoute(
  decision: AgentDecision | undefined,
  direction: CallRecord['direction'],
  deps: RouteDeps,
): Route {
  switch (decision?.kind) {
    case 'agent':
      return { kind: 'candidates', direction, candidates: [decision.agent] }
    case 'limited':
      return refused(direction, 503, 'Service Unavailable', 'agent_limit', decision.limit, deps)
    case undefined:
    default:
      return { kind: 'refused', direction, end: noAgent() }
  }
}

export const isOurSide = ({ kind }: Origin): boolean =>
  kind === 'node' || kind === 'extension' || kind === 'application'

function refused(
  direction: CallRecord['direction'],
  status: number,
  reason: string,
  code: string,
  detail?: string,
  deps?: RouteDeps,
): Route {
  const end = refusal(status, reason, code, deps && retryAfter(deps), detail)
  return { kind: 'refused', direction, end }
}

export const retryAfter = (deps: Pick<RouteDeps, 'retryAfterSeconds'>) => ({
  'Retry-After': String(deps.retryAfterSeconds),
})

/** All phones of one extension, called at the same time. */
export interface ExtensionDestination {
  readonly kind: 'extension'
  /** `sip:<extension>@<domain>`. */
  readonly uri: string
  readonly tenantId: number
  readonly phones: readonly PhoneCandidate[]
  readonly voicemail: VoicemailCandidate | undefined
  /** All registered Contacts lead to gateways, and may not be called without a price. */
  readonly leadsToGateway?: true
}

/**
 * The extension that a phone or a node dials. Undefined: it dials something else. Such a call is
 * not charged. A phone may call its own domain by whatever name leads here; the name of another
 * domain of ours means that one's extension.
 */
export function innerExtension(
  origin: Origin,
  calledNumber: string,
  domain: string,
  deps: RouteDeps,
): ExtensionDestination | undefined {
  if (origin.kind === 'extension') {
    const host = plainHost(domain)
    const dialled = deps.registrar.tenantOf(host) === undefined ? origin.domain : host
    return extensionAt(dialled, calledNumber, deps)
  }
  if (origin.kind === 'application') {
    const { tenantId } = origin
    const home = tenantId === null ? undefined : deps.registrar.homeDomain(tenantId)
    return extensionAt(domain || (home ?? ''), calledNumber, deps)
  }
  return origin.kind === 'node' ? extensionAt(domain, calledNumber, deps) : undefined
}

/** The extension that an inbound route names; undefined: it does not exist. */
function routedExtension(
  target: Extract<InboundTarget, { readonly kind: 'extension' }>,
  calledDomain: string,
  deps: RouteDeps,
): ExtensionDestination | undefined {
  const domain =
    target.domain ??
    (deps.registrar.extensionAt(calledDomain, target.extension)
      ? calledDomain
      : deps.registrar.homeDomain(target.tenantId))
  return domain === undefined ? undefined : extensionAt(domain, target.extension, deps)
}

/** Undefined: there is none. */
export function extensionAt(
  calledDomain: string,
  number: string,
  deps: RouteDeps,
): ExtensionDestination | undefined {
  const record = deps.registrar.extensionAt(calledDomain, number)
  if (record === undefined) return undefined
  const { domain, extension, tenantId, isVoicemailEnabled } = record
  const voicemail = isVoicemailEnabled ? deps.voicemailOf(tenantId) : undefined
  const contacts = deps.registrar.contactsOf(domain, extension)
  // A Contact that leads to a gateway is not a phone: neither calls nor messages go there without a
  // price.
  const phones = contacts.flatMap((contact) => {
    const phone = { ...phoneAt(contact), extension, domain, tenantId }
    return gatewayBehindPhone(phone, tenantId, deps.gatewayBehind) === undefined ? [phone] : []
  })
  return {
    kind: 'extension',
    uri: `sip:${extension}@${domain}`,
    tenantId,
    phones,
    ...(phones.length === 0 && contacts.length > 0 && { leadsToGateway: true }),
    voicemail:
      voicemail === undefined
        ? undefined
        : { kind: 'voicemail', uri: voicemail, extension, domain, tenantId },
  }
}

export const phoneAt = (contact: ContactTarget) => {
  const { uri, routes, nextHop, lastHop, holder, holderRun, isOnWebSocket, natAddress } = contact
  return {
    kind: 'phone' as const,
    uri,
    routes,
    nextHop,
    ...(lastHop !== undefined && { lastHop }),
    ...(holder !== undefined && { holder }),
    ...(holderRun !== undefined && { holderRun }),
    ...(isOnWebSocket && { isOnWebSocket }),
    ...(natAddress !== undefined && { natAddress }),
  }
}
