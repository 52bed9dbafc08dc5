/** What a call needs before anyone is called: somebody who pays for it, unless it is free. */
import type { Account, Charging } from '../../../schema/contracts/charging.ts'
import type { Origin } from '../../routing/routing.ts'
import type { ActiveCalls } from '../active-calls.ts'
import type { Call, Direction } from '../call.ts'
import type { Reading } from './incoming-invite.ts'
import type { End } from '../cdr/end-reason.ts'
import {
  deadEnd,
  emergencyRoute,
  houseOf,
  innerRoute,
  isKnownOutside,
  retryAfter,
  type Route,
  type RouteDeps,
} from './route.ts'

export interface AdmissionDeps extends RouteDeps {
  readonly charging: Charging
  readonly calls: Pick<ActiveCalls, 'started'>
  /** Milliseconds UTC. */
  readonly now: () => number
}

/** Where a call goes for which nobody is asked to pay. */
export interface FreeRoute {
  readonly isEmergency: boolean
  /** Undefined: the call costs something, and its route depends on who pays. */
  readonly route: Route | undefined
  /** Whose house the call stays in. */
  readonly tenantId: number | null
}

/** Emergencies and calls inside a house ask no wallet. */
export function freeRoute(reading: Reading, deps: RouteDeps): FreeRoute {
  const emergency = emergencyRoute(reading, deps)
  if (emergency) {
    const tenantId = reading.origin.kind === 'extension' ? reading.origin.tenantId : null
    return { isEmergency: true, route: emergency, tenantId }
  }
  const { route, tenantId = null } = innerRoute(reading, deps) ?? deadEnd(reading, deps) ?? {}
  return { isEmergency: false, route, tenantId }
}

/** Undefined: the call may go on. */
export async function admit(
  call: Call,
  reading: Reading,
  free: FreeRoute,
  deps: AdmissionDeps,
): Promise<End | undefined> {
  call.origin = reading.origin
  call.isEmergency = free.isEmergency
  call.direction = free.route?.direction ?? expectedDirection(reading.origin)
  call.notes.push({ at: deps.now(), what: 'recognized', origin: reading.origin })
  const refusal = await refusalOf(call, reading, free, deps)
  // A call that is refused at once has an end and no beginning; one of the API's has neither.
  if (refusal === undefined) deps.calls.started(call)
  return refusal
}

/** Of a call that ends before it has a route. */
const expectedDirection = ({ kind }: Origin): Direction =>
  kind === 'extension' || kind === 'node' ? 'outbound' : 'inbound'

async function refusalOf(
  call: Call,
  reading: Reading,
  { route, tenantId }: FreeRoute,
  deps: AdmissionDeps,
): Promise<End | undefined> {
  if (route === undefined) {
    const denial = await authorize(call, reading, deps)
    return call.stopped ?? denial
  }
  call.isFree = true
  call.account = unpaid(tenantId)
  if (route.kind === 'refused') {
    call.notes.push({ at: deps.now(), what: 'routed', route })
    return call.stopped ?? route.end
  }
  return call.stopped
}

/** It belongs to the tenant whose phone it is, and nobody pays for it. */
export const unpaid = (tenantId: number | null): Account => ({
  ...{ customerId: null, tenantId, ratePrefix: null, currency: null, isUnauthorizedByOcs: false },
})

async function authorize(
  call: Call,
  reading: Reading,
  deps: AdmissionDeps,
): Promise<End | undefined> {
  const { origin, callerNumber, calledNumber: callee } = reading
  // What click-to-call shows as the caller names no payer.
  const caller = origin.kind === 'extension' ? origin.extension : callerNumber
  const { callUuid } = call.start
  const startedAt = call.start.startedAt + call.stampOffsetMs
  const customerId = 'customerId' in origin ? origin.customerId : null
  // What a tenant has written (carriers, nodes, extensions) spends the money of its own customers only.
  const house = origin.kind === 'proxy' ? origin.tenantIds : houseOf(origin, deps)
  const payerTenantId = call.payerTenantId ?? house
  const mayNamePayer = origin.kind !== 'carrier' || origin.payer === 'from_number'
  const payer = { customerId, payerTenantId, mayNamePayer }
  const request = { callUuid, caller, callee, startedAt, ...payer }
  const verdict = await deps.charging.authorize(request)
  call.notes.push({ at: deps.now(), what: 'charged', verdict })
  if (verdict.kind === 'unreachable')
    return {
      kind: 'refused',
      status: 503,
      reason: 'Service Unavailable',
      code: 'ocs_unreachable',
      headers: retryAfter(verdict),
    }
  call.account = verdict.account
  if (verdict.kind === 'denied' && isPayerRefused(verdict.code))
    return { kind: 'refused', status: 403, reason: 'Forbidden', code: verdict.code }
  if (verdict.kind === 'denied' && isUnknownNumber(reading, verdict.code, deps))
    return { kind: 'refused', status: 404, reason: 'Not Found', code: 'unknown_extension' }
  if (verdict.kind === 'denied')
    return {
      kind: 'refused',
      status: 402,
      reason: 'Payment Required - Insufficient Funds',
      code: verdict.code,
    }
  call.grantedSeconds = verdict.grantedSeconds
  // The call is free, and after a crash its number names no payer either.
  if (!mayNamePayer && verdict.account.customerId === null) call.isFree = true
  return undefined
}

/** No wallet is short of money: there is none that may be charged. */
const isPayerRefused = (code: string): boolean =>
  code === 'payer_of_other_tenant' || code === 'no_payer'

/** A phone has dialled what no route and no price knows: no wallet has been asked, and none lacks funds. */
const isUnknownNumber = (reading: Reading, code: string, deps: AdmissionDeps): boolean =>
  reading.origin.kind === 'extension' &&
  (code === 'unknown_caller' || code === 'no_rate') &&
  !isKnownOutside(reading, deps)
