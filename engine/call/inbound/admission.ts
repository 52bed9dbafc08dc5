/** Admits a call: finds its payer, unless the call is free. */
import type { LiveCall, Note } from '../call-machine/state.ts'
import type { Log } from '../../../schema/contracts/log.ts'
import type {
  Account,
  AuthorizationRequest,
  Charging,
  Verdict,
} from '../../../schema/contracts/charging.ts'
import type { Origin } from '../../routing/routing.ts'
import type { ActiveCalls } from '../active-calls.ts'
import type { CallRecord } from '../../../schema/call-record.ts'
import type { MachineEvent } from '../call-machine/protocol.ts'
import type { IncomingInvite } from './incoming-invite.ts'
import { fault, refused, type End } from '../cdr/end-reason.ts'
import {
  deadEnd,
  nowhere,
  emergencyRoute,
  isOurSide,
  tenantOf,
  innerRoute,
  isKnownOutside,
  retryAfter,
  routeCall,
  type Route,
  type RouteDeps,
} from './route.ts'
import { isName } from '../../../schema/rules/numbers.ts'

export interface AdmissionDeps extends RouteDeps {
  readonly charging: Charging
  readonly calls: Pick<ActiveCalls, 'started'>
  readonly dispatch: (event: MachineEvent) => void
  /** Milliseconds UTC. */
  readonly now: () => number
}

/** Where a call goes, as far as that is known before its payer. */
export interface RoutePlan {
  readonly isEmergency: boolean
  /** Undefined: the call is charged, and its route depends on the payer. */
  readonly route: Route | undefined
  /** The tenant of a call that does not leave it. */
  readonly tenantId: number | null
}

/** Emergencies and calls inside a tenant ask no wallet. */
export function planRoute(invite: IncomingInvite, deps: RouteDeps): RoutePlan {
  const emergency = emergencyRoute(invite, deps)
  if (emergency) {
    const tenantId = invite.origin.kind === 'extension' ? invite.origin.tenantId : null
    return { isEmergency: true, route: emergency, tenantId }
  }
  const { route, tenantId = null } = innerRoute(invite, deps) ?? deadEnd(invite, deps) ?? {}
  return { isEmergency: false, route, tenantId }
}

/** Admits a call, after authorization unless it is free. Returns the end of a call that is refused. */
export async function admit(
  call: LiveCall,
  invite: IncomingInvite,
  plan: RoutePlan,
  deps: AdmissionDeps,
): Promise<End | undefined> {
  const { callUuid } = call.start
  const { origin } = invite
  const { route, isEmergency } = plan
  const direction = route?.direction ?? expectedDirection(origin)
  const notes: Note[] = [{ at: deps.now(), what: 'recognized', origin }]
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

/** Authorizes and dials a call. `shown`: the INVITE as the called side gets it. Resolves with a refusal. */
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
    dial(shown, route, plan.isEmergency, deps)
  }
  return refusal
}

type Dispatching = Pick<AdmissionDeps, 'dispatch'>

/** An emergency is dialled by any way there is, also when it was called by `sips:`. */
export function dial(
  invite: IncomingInvite,
  route: Route,
  isEmergency: boolean,
  { dispatch }: Dispatching,
): void {
  const outgoing = isEmergency ? { ...invite, isSecure: false } : invite
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

/** Of a call that ends before it has a route. */
export const expectedDirection = ({ kind }: Origin): CallRecord['direction'] =>
  kind === 'extension' || kind === 'node' ? 'outbound' : 'inbound'

/** A call without authorization: it belongs to the tenant of its phone. */
const unpaid = (tenantId: number | null): Account => ({
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
  const asked = askedOf(invite, deps)
  const { mayNamePayer } = asked
  const payerTenantId = call.payerTenantId ?? asked.payerTenantId
  const verdict = await deps.charging.authorize({ ...asked, callUuid, startedAt, payerTenantId })
  const charged = { at: deps.now(), what: 'charged', verdict } as const
  const tell = (account: Account | null, grantedSeconds: number | null, isFree: boolean): void => {
    deps.dispatch({ type: 'charged', callUuid, account, grantedSeconds, isFree, note: charged })
  }
  if (verdict.kind === 'unreachable') tell(null, null, false)
  else {
    const { account } = verdict
    const grantedSeconds = verdict.kind === 'granted' ? verdict.grantedSeconds : 0
    // The call is free, and after a crash its number names no payer either.
    const isFree = verdict.kind === 'granted' && !mayNamePayer && account?.customerId == null
    tell(account, Number.isFinite(grantedSeconds) ? grantedSeconds : null, isFree)
  }
  return refusalBy(verdict, invite, deps)
}

/** What charging is asked about a call. */
export function askedOf(invite: IncomingInvite, deps: RouteDeps) {
  const { origin, callerNumber, calledNumber: callee } = invite
  // What click-to-call shows as the caller names no payer.
  const caller = origin.kind === 'extension' ? origin.extension : callerNumber
  const customerId = 'customerId' in origin ? origin.customerId : null
  // What a tenant has written (carriers, nodes, extensions) spends the money of its own customers only.
  const payerTenantId = origin.kind === 'proxy' ? origin.tenantIds : tenantOf(origin, deps)
  const mayNamePayer = origin.kind !== 'carrier' || origin.payer === 'from_number'
  const extensionId = origin.kind === 'extension' ? origin.extensionId : null
  const isEmergencyNumber = deps.routing.isEmergencyNumber(callee)
  const tenantId = tenantOf(origin, deps)
  const sentAs: AuthorizationRequest['sentAs'] = (payerId, payersTenantId) =>
    deps.routing.sentNumbers(callee, { customerId: payerId, tenantId: tenantId ?? payersTenantId })
  const asked = { caller, callee, customerId, payerTenantId, mayNamePayer, extensionId }
  if (isName(callee)) return { ...asked, isName: true }
  const shown = isOurSide(origin) ? { ...asked, sentAs } : asked
  return isEmergencyNumber ? { ...shown, isEmergencyNumber } : shown
}

/** What the caller is told when charging refuses; undefined: the call goes on. */
export function refusalBy(
  verdict: Verdict,
  invite: IncomingInvite,
  deps: RouteDeps,
): End | undefined {
  if (verdict.kind === 'unreachable')
    return refused(503, 'Service Unavailable', verdict.by ?? 'ocs_unreachable', retryAfter(verdict))
  if (verdict.kind === 'granted') return undefined
  const { code, detail, lack } = verdict
  if (isPayerRefused(code) || code === 'spend_guard')
    return refused(403, 'Forbidden', code, undefined, detail)
  if (isUnknownNumber(invite, code, deps)) return nowhere(invite.calledNumber)
  const refusal = refused(402, 'Payment Required - Insufficient Funds', code, undefined, detail)
  return lack === undefined ? refusal : { ...refusal, lack }
}

/** No wallet is short of money: there is none that may be charged. */
const isPayerRefused = (code: string): boolean =>
  code === 'payer_of_other_tenant' || code === 'no_payer'

/** A phone has dialled what no route and no price knows: no wallet has been asked, and none lacks funds. */
const isUnknownNumber = (invite: IncomingInvite, code: string, deps: RouteDeps): boolean =>
  invite.origin.kind === 'extension' &&
  (code === 'unknown_caller' || code === 'no_rate') &&
  !isKnownOutside(invite, deps)
