/** Admits a call: finds its payer, unless the call is free. */
import type { LiveCall, Note } from '../call-machine/state.ts'
import type { Log } from '../../../schema/contracts/log.ts'
import type { Account, AuthorizationRequest, Charging } from '../../../schema/contracts/charging.ts'
import type { Origin, ExtensionOrigin, Routing } from '../../routing/routing.ts'
import type { ActiveCalls } from '../active-calls.ts'
import type { CallRecord } from '../../../schema/contracts/call-record.ts'
import type { MachineEvent } from '../call-machine/protocol.ts'
import type { ApplicationCandidate } from '../application/application-runs.ts'
import { askedFirst } from '../application/asked-first.ts'
import type { IncomingInvite } from './incoming-invite.ts'
import { parametersOf } from './number-parameters.ts'
import { fault, refused, type End, type CallRefusal } from '../cdr/end-reason.ts'
import {
  deadEnd,
  emergencyRoute,
  isOurSide,
  tenantOf,
  innerRoute,
  retryAfter,
  routeCall,
  type Route,
  type RouteDeps,
} from './route.ts'
import { ACCEPTED_TYPES, requiredType, UNSUPPORTED } from '../multipart.ts'
import { isName } from '../../../schema/rules/numbers.ts'
import type { ClosedCode } from '../../../schema/contracts/calls.ts'
import {
  answerToIrregular,
  type Irregular,
  ownMark,
  unsupportedOptions,
  respond,
} from '../sip-headers.ts'
import type { Headers, SipRequest, Answer } from '../signalling.ts'
import type { PhoneAnswer, Registrar } from '../../registrar/registrar.ts'
import { refusalBy } from './charging-refusal.ts'

interface AdmissionDeps extends RouteDeps {
  readonly charging: Charging
  readonly calls: Pick<ActiveCalls, 'started'>
  readonly dispatch: (event: MachineEvent) => void
  /** Milliseconds UTC. */
  readonly now: () => number
  readonly hooks?: RouteHook | undefined
}

/** The operator's own code about the destinations of a call. */
interface RouteHook {
  /** Undefined: it is not asked. */
  route(call: LiveCall, route: Route, calledNumber: string): Promise<HookedDestinations> | undefined
  /** Notes the carriers of its choice that take no part in the call. */
  leftOut(invite: Pick<IncomingInvite, 'target'>, route: Route): readonly Note[]
}

interface HookedDestinations {
  readonly route: Route
  readonly notes: readonly Note[]
}

/** The route of a call, as far as it is known before its payer. */
export interface RoutePlan {
  readonly isEmergency: boolean
  /** Undefined: the call is charged, and its route depends on the payer. */
  readonly route: Route | undefined
  /** The tenant of a call that does not leave it. */
  readonly tenantId: number | null
  /** Why the call does not begin. */
  readonly refusal?: CallRefusal | undefined
  /** It is asked before all others. */
  readonly application?: ApplicationCandidate | undefined
}

/** Rules for a call, by the way in which it begins. */
interface WayRules {
  readonly emergency: 'dialled' | 'refused'
  /** Numbers of the tenant itself. */
  readonly inside: 'dialled' | 'refused'
}

/**
 * Every way in which a call to a number begins. A person dials in the first three; the others have
 * dialled by themselves.
 */
export const ways = {
  invite: { emergency: 'dialled', inside: 'dialled' },
  'click-to-call': { emergency: 'dialled', inside: 'dialled' },
  transfer: { emergency: 'dialled', inside: 'dialled' },
  /** By a phone, to the outside: inside the tenant it is the same call. */
  forward: { emergency: 'refused', inside: 'refused' },
  'test call': { emergency: 'refused', inside: 'dialled' },
  /** By the operator's drachtio-srf application. */
  application: { emergency: 'refused', inside: 'dialled' },
  /** Through the gateways of one carrier. */
  'carrier test': { emergency: 'refused', inside: 'refused' },
} as const satisfies Readonly<Record<string, WayRules>>

export type WayToCall = keyof typeof ways

/**
 * The questions that each call to a number answers before it is admitted, in whatever way it
 * begins: whether calls are taken, and what the number is. `admit` asks the rest: who pays, for
 * what, and with which guards.
 */
export function planCall(way: WayToCall, invite: IncomingInvite, deps: PlanDeps): RoutePlan {
  const rules: WayRules = ways[way]
  if (isRefusedEmergency(way, invite, deps)) return { ...charged, refusal: notForTests }
  if (rules.inside === 'refused') {
    const isInside = innerRoute(invite, deps) !== undefined
    return { ...charged, refusal: isInside ? notInside : closedRefusal(deps) }
  }
  const plan = planRoute(invite, deps)
  if (plan.isEmergency) return plan
  return { ...plan, refusal: closedRefusal(deps) ?? hiddenEmergency(invite, deps) }
}

/**
 * A routing number that is an emergency number, beside a number that is none: the call would reach
 * an emergency service by the price and the limits of an ordinary one.
 */
function hiddenEmergency(invite: IncomingInvite, { routing }: RouteDeps): CallRefusal | undefined {
  const { rn } = parametersOf(invite) ?? {}
  return rn !== undefined && routing.isEmergencyNumber(rn)
    ? refused(403, 'Forbidden', 'destination_blocked', undefined, `routing number ${rn}`)
    : undefined
}

type PlanDeps = RouteDeps & { readonly calls: Openness }

/** Nobody has dialled it who needs help. */
export const isRefusedEmergency = (
  way: WayToCall,
  { calledNumber }: Pick<IncomingInvite, 'calledNumber'>,
  { routing }: Pick<RouteDeps, 'routing'>,
): boolean => ways[way].emergency === 'refused' && routing.isEmergencyNumber(calledNumber)

/** The route depends on the payer. */
const charged: RoutePlan = { isEmergency: false, route: undefined, tenantId: null }
const notForTests = refused(403, 'Forbidden', 'emergency_number')
const notInside = refused(403, 'Forbidden', 'internal_number')

/** Emergencies and calls inside a tenant ask no wallet. */
function planRoute(invite: IncomingInvite, deps: RouteDeps): RoutePlan {
  const emergency = emergencyRoute(invite, deps)
  if (emergency) {
    const tenantId = invite.origin.kind === 'extension' ? invite.origin.tenantId : null
    return { isEmergency: true, route: emergency, tenantId }
  }
  const { route, tenantId = null } = innerRoute(invite, deps) ?? deadEnd(invite, deps) ?? {}
  return { isEmergency: false, route, tenantId }
}

/**
 * Admits a call, after authorization unless it is free. Returns the end of a call that is refused.
 */
export async function admit(
  call: LiveCall,
  invite: IncomingInvite,
  plan: RoutePlan,
  deps: AdmissionDeps,
): Promise<End | undefined> {
  if (plan.refusal) return plan.refusal
  const { callUuid } = call.start
  const { origin } = invite
  const { route, isEmergency } = plan
  const direction = route?.direction ?? expectedDirection(origin)
  const notes: Note[] = [{ at: deps.now(), what: 'recognized', origin }]
  if (invite.ruled) notes.push({ at: deps.now(), what: 'ruled', direction: 'in', ...invite.ruled })
  if (route?.kind === 'refused') notes.push({ at: deps.now(), what: 'routed', route })
  deps.dispatch({
    type: 'admit',
    callUuid,
    origin,
    direction,
    isEmergency,
    account: route ? unpaid(plan.tenantId) : null,
    grantedSeconds: null,
    isFree: route !== undefined,
    notes,
  })
  const refusal = route ? refusalIn(route) : await authorize(call, invite, deps)
  // A call that is refused at once has an end and no beginning; one of the API's has neither.
  if (refusal === undefined && call.end === undefined) deps.calls.started(call)
  return call.end ?? refusal
}

/** Admits a call inside a tenant without authorization. */
export function admitFree(
  call: LiveCall,
  origin: Origin,
  tenantId: number | null,
  { calls, dispatch, now }: Pick<AdmissionDeps, 'calls' | 'dispatch' | 'now'>,
): void {
  const notes = [{ at: now(), what: 'recognized', origin } as const]
  const known = { origin, direction: 'internal', isEmergency: false, notes } as const
  const paid = { account: unpaid(tenantId), grantedSeconds: null, isFree: true }
  dispatch({ type: 'admit', callUuid: call.start.callUuid, ...known, ...paid })
  calls.started(call)
}

/**
 * Authorizes and dials a call. `shown`: the INVITE as the called side gets it. Resolves with a
 * refusal.
 */
export async function admitAndDial(
  call: LiveCall,
  invite: IncomingInvite,
  plan: RoutePlan,
  deps: AdmissionDeps,
  shown = invite,
): Promise<End | undefined> {
  const refusal = await admit(call, invite, plan, deps)
  if (refusal) refuse(call, refusal, deps)
  else {
    const route = plan.route ?? routeCall(invite, call.account, deps)
    const asked = plan.isEmergency ? undefined : askRoute(call, route, invite, deps)
    const chosen = asked === undefined ? route : await asked
    dial(shown, askedFirst(chosen, plan.application), plan.isEmergency, deps)
  }
  return refusal
}

/** The route as a hook has changed it; undefined: no hook is asked about it. */
export function askRoute(
  call: LiveCall,
  route: Route,
  { callUuid, calledNumber, target }: IncomingInvite,
  { hooks, dispatch }: Pick<AdmissionDeps, 'hooks' | 'dispatch'>,
): Promise<Route> | undefined {
  const left = target === undefined ? undefined : hooks?.leftOut({ target }, route)
  if (left?.length) dispatch({ type: 'hooked', callUuid, notes: left })
  return hooks?.route(call, route, calledNumber)?.then((hooked) => {
    dispatch({ type: 'hooked', callUuid, notes: hooked.notes })
    return hooked.route
  })
}

type Dispatching = Pick<AdmissionDeps, 'dispatch'>

/** An emergency is dialled by any way there is, also when it was called by `sips:`. */
export function dial(
  invite: IncomingInvite,
  route: Route,
  isEmergency: boolean,
  { dispatch }: Dispatching,
): void {
  const outgoing = isEmergency ? { ...invite, isSecure: false, ported: undefined } : invite
  dispatch({ type: 'dial', callUuid: invite.callUuid, route, invite: outgoing, isEmergency })
}

export const refuse = ({ start }: LiveCall, end: End, { dispatch }: Dispatching): void =>
  dispatch({ type: 'refuse', callUuid: start.callUuid, end })

/** Refuses a call whose setup has failed by a bug. */
export function onFault(call: LiveCall, deps: Dispatching & { readonly log: Log }) {
  return (error: unknown): End => {
    deps.log('error', 'a call failed', { callUuid: call.start.callUuid, error })
    refuse(call, fault, deps)
    return fault
  }
}

const refusalIn = (route: Route): End | undefined =>
  route.kind === 'refused' ? route.end : undefined

/** The direction of a call that ends before it has a route. */
export const expectedDirection = (origin: Origin): CallRecord['direction'] =>
  isOurSide(origin) ? 'outbound' : 'inbound'

/** A call without authorization: it belongs to the tenant of its phone. */
export const unpaid = (tenantId: number | null): Account => ({
  customerId: null,
  tenantId,
  ratePrefix: null,
  currency: null,
  isUnauthorizedByOcs: false,
})

async function authorize(
  call: LiveCall,
  invite: IncomingInvite,
  deps: AdmissionDeps,
): Promise<End | undefined> {
  const { callUuid } = call.start
  const startedAt = call.start.startedAt + call.stampOffsetMs
  const authorization = authorizationOf(invite, deps)
  const { mayNamePayer } = authorization
  const payerTenantId = call.payerTenantId ?? authorization.payerTenantId
  const verdict = await deps.charging.authorize({
    ...authorization,
    callUuid,
    startedAt,
    payerTenantId,
    ...(call.tags && { tags: call.tags }),
  })
  const charged = { at: deps.now(), what: 'charged', verdict } as const
  const note = (account: Account | null, grantedSeconds: number | null, isFree: boolean): void => {
    deps.dispatch({ type: 'charged', callUuid, account, grantedSeconds, isFree, note: charged })
  }
  if (verdict.kind === 'unreachable') note(null, null, false)
  else {
    const { account } = verdict
    const grantedSeconds = verdict.kind === 'granted' ? verdict.grantedSeconds : 0
    // The call is free, and after a crash its number names no payer either.
    const isFree = verdict.kind === 'granted' && !mayNamePayer && account?.customerId == null
    note(account, Number.isFinite(grantedSeconds) ? grantedSeconds : null, isFree)
  }
  return refusalBy(verdict, invite, deps)
}

/** The authorization request of a call. */
export function authorizationOf(invite: IncomingInvite, deps: RouteDeps) {
  const { origin, callerNumber, calledNumber: callee } = invite
  // The caller number of a click-to-call request does not select the payer.
  const caller = origin.kind === 'extension' ? origin.extension : callerNumber
  const customerId = 'customerId' in origin ? origin.customerId : null
  // Carriers, nodes and extensions of a tenant may charge customers of that tenant only.
  const payerTenantId = origin.kind === 'proxy' ? origin.tenantIds : tenantOf(origin, deps)
  const mayNamePayer = mayName(origin)
  const extensionId = origin.kind === 'extension' ? origin.extensionId : null
  const isEmergencyNumber = deps.routing.isEmergencyNumber(callee)
  const tenantId = tenantOf(origin, deps)
  const sentAs: AuthorizationRequest['sentAs'] = (payerId, payersTenantId) =>
    deps.routing.sentNumbers(callee, { customerId: payerId, tenantId: tenantId ?? payersTenantId })
  const { rn: routingNumber } = parametersOf(invite) ?? {}
  const routed = routingNumber !== undefined && !isEmergencyNumber && { routingNumber }
  const named = { caller, callee, customerId, payerTenantId, mayNamePayer, extensionId }
  const request = routed ? { ...named, ...routed } : named
  if (isName(callee)) return { ...request, isName: true }
  const goesOut = isOurSide(origin) || invite.target?.kind === 'carriers'
  const withNumbers = goesOut ? { ...request, sentAs } : request
  return isEmergencyNumber ? { ...withNumbers, isEmergencyNumber } : withNumbers
}

function mayName(origin: Origin): boolean {
  if (origin.kind === 'application') return origin.mayNamePayer
  return origin.kind !== 'carrier' || origin.payer === 'from_number'
}

// Checks of an INVITE before authorization and routing.

export interface ValidationDeps {
  readonly calls: Openness & Pick<ActiveCalls, 'isCalling'>
  /** The `Retry-After` of a refusal because a limit is reached. */
  readonly retryAfterSeconds: number
}

/** With more calls the process could not serve them in time. A call takes about 15 kB. */
const MAX_CALLS = 20_000

type Openness = Pick<ActiveCalls, 'isDraining' | 'size' | 'unserved'>

/** Why no call begins now, as its record's `denial_code`; undefined: calls are taken. */
export function closedBy(calls: Openness): ClosedCode | undefined {
  if (calls.isDraining) return 'draining'
  if (calls.size > MAX_CALLS) return 'overload'
  return calls.unserved
}

export function closedRefusal(
  deps: Pick<ValidationDeps, 'retryAfterSeconds'> & { readonly calls: Openness },
): CallRefusal | undefined {
  const closed = closedBy(deps.calls)
  if (closed === undefined) return undefined
  const headers = { ...retryAfter(deps), ...why(closed) }
  const detail = closed === 'overload' ? `over ${MAX_CALLS} calls at once` : undefined
  return refused(503, 'Service Unavailable', closed, headers, detail)
}

/** The INVITE as it was received. */
interface CheckedInvite {
  readonly headers: Headers
  /** Whether a dialog can be formed with this caller. */
  readonly hasUsableContact: boolean
  /** Describes an unknown source. */
  readonly stranger?: string | undefined
}

type CheckedCall = Pick<IncomingInvite, 'origin' | 'calledNumber' | 'irregular' | 'hopsLeft'> & {
  readonly isEmergency: boolean
  /** The route of the call is already known. */
  readonly isRouted?: boolean
}

/** Returns why the INVITE is refused. Undefined: it is valid. */
export function rejectionFor(
  { headers, hasUsableContact, stranger }: CheckedInvite,
  { origin, calledNumber, irregular, hopsLeft, isEmergency, isRouted = false }: CheckedCall,
  deps: ValidationDeps,
): End | undefined {
  if (origin.kind === 'unknown')
    return refused(403, 'Forbidden', 'unknown_source', undefined, stranger)
  const closed = isEmergency ? undefined : closedRefusal(deps)
  if (closed) return closed
  if (!hasUsableContact) return refused(400, 'Missing Or Bad Contact', 'bad_request')
  // RFC 3261 §16.3: a back-to-back user agent that does not count hops loops like a proxy.
  if (hopsLeft < 0) return refused(483, 'Too Many Hops', 'too_many_hops')
  const mark = ownMark(headers)
  if (mark !== undefined && deps.calls.isCalling(mark, calledNumber))
    return refused(482, 'Loop Detected', 'loop')
  const unsupported = unsupportedOptions(headers['require'])
  if (unsupported !== '')
    return refused(420, 'Bad Extension', 'bad_extension', { Unsupported: unsupported })
  // RFC 5621 §3. Nobody is left without help because of a part of a body.
  const unknownPart = isEmergency ? undefined : requiredType(headers)
  if (unknownPart !== undefined) return unsupportedBody(unknownPart)
  // An INVITE that takes the place of a party (RFC 3891) calls no number.
  if (headers['replaces'] !== undefined) return undefined
  // Trunks may call a name. A phone or node calls the names of its tenant's agents and extensions
  // only.
  const isCallable = irregular === 'name' && (isRouted || !isOurSide(origin))
  return isCallable ? undefined : wrongNumber(calledNumber, irregular)
}

/** RFC 3261 §8.2.3. */
const unsupportedBody = (type: string): End =>
  refused(415, UNSUPPORTED, 'unsupported_body', { Accept: ACCEPTED_TYPES }, type)

/**
 * RFC 6432: 41 is a temporary failure. Other reasons pass by themselves; this one an operator has
 * to mend.
 */
const why = (closed: ClosedCode): Headers =>
  closed === 'node_fenced' ? { Reason: 'Q.850;cause=41;text="Node Fenced"' } : {}

/** Why a call is refused whose carrier has reached its limits. */
export const carrierFull = (
  deps: Pick<ValidationDeps, 'retryAfterSeconds'>,
  limit: string | undefined,
): End => refused(503, 'Service Unavailable', 'carrier_limit', retryAfter(deps), limit)

/**
 * Refuses a called party that is not a number: it could not be priced, blocked and routed by its
 * digits.
 */
function wrongNumber(number: string, irregular: Irregular | undefined): End | undefined {
  if (number === '') return refused(484, 'Address Incomplete', 'no_number')
  if (irregular === undefined) return undefined
  const { status, reason } = answerToIrregular[irregular]
  return refused(status, reason, irregular === 'name' ? 'unknown_name' : 'malformed_number')
}

// Identifies the caller (SPECIFICATION.md §10.1): a phone by its password, any other source by its
// address.

export interface IdentifyDeps {
  readonly routing: Pick<Routing, 'recognize'>
  readonly registrar: Pick<Registrar, 'authenticate' | 'claimedTenant'>
}

export type Identification =
  | {
      readonly kind: 'origin'
      readonly origin: Origin
      /**
       * A phone with a right password that may not call like this: known, although its origin is
       * not.
       */
      readonly isAuthenticated?: true
      /** The domain that a stranger names, which no tenant has. */
      readonly unknownDomain?: string | undefined
    }
  /** A phone that has to authenticate first: not a call yet, so it leaves no record. */
  | { readonly kind: 'challenged'; readonly answer: PhoneAnswer }

export function identify(request: SipRequest, deps: IdentifyDeps): Identification {
  const { method, headers } = request
  const source = sourceOf(request)
  const byAddress = deps.routing.recognize(source)
  const isOthersPhone = isPhoneOfOthers(request, byAddress, deps)
  // A node sends calls of phones that it has authenticated itself.
  if (byAddress.kind === 'node' && !isOthersPhone) return { kind: 'origin', origin: byAddress }
  // A carrier may write any user of our domain in From, but not one that is an extension.
  const caller = deps.registrar.authenticate(
    { method, headers, source },
    byAddress.kind === 'carrier' && !isOthersPhone,
  )
  switch (caller.kind) {
    case 'stranger':
      return { kind: 'origin', origin: byAddress, unknownDomain: caller.domain }
    case 'extension':
      return { kind: 'origin', origin: originOf(caller.extension) }
    case 'refused':
    default:
      return caller.answer.status === 407
        ? { kind: 'challenged', answer: caller.answer }
        : { kind: 'origin', origin: { kind: 'unknown' }, isAuthenticated: true }
  }
}

/** Whether the sender has no known address, and has not proved that it receives at its address. */
export const isUnproven = (identified: Identification): boolean =>
  identified.kind === 'challenged'
    ? identified.answer.isToStranger === true
    : identified.origin.kind === 'unknown' && identified.isAuthenticated !== true

/**
 * Whether a request that comes from a tenant's node or carrier names an extension of another
 * tenant: a tenant may write the address of a phone that is not its own, and would get the calls of
 * that phone.
 */
function isPhoneOfOthers(
  { headers }: SipRequest,
  source: Origin,
  { registrar }: IdentifyDeps,
): boolean {
  const owner = source.kind === 'node' || source.kind === 'carrier' ? source.tenantId : undefined
  if (owner === undefined || owner === null) return false
  const claimed = registrar.claimedTenant({ headers })
  return claimed !== undefined && claimed !== owner
}

/** An extension as the origin of a call. */
export function originOf(record: Omit<ExtensionOrigin, 'kind'>): ExtensionOrigin {
  const { extensionId, tenantId, customerId, domain, extension, displayName } = record
  return { kind: 'extension', extensionId, tenantId, customerId, domain, extension, displayName }
}

export function respondToPhone(answer: Answer, { status, reason, headers }: PhoneAnswer): void {
  const lines: Headers = {}
  for (const [name, value] of Object.entries(headers))
    // The library would join several values with commas, which RFC 3261 §7.3.1 forbids for
    // challenges.
    lines[name] = typeof value === 'string' ? value : value.join(`\r\n${name}: `)
  respond(answer, status, reason, { headers: lines })
}

export const sourceOf = ({
  protocol,
  sourceAddress: address,
  sourcePort: port,
}: Pick<SipRequest, 'protocol' | 'sourceAddress' | 'sourcePort'>) => ({ protocol, address, port })
