/** One call from INVITE to record, in the order it happens. */
import type { Account, Charging } from '../charging/charging.ts'
import type { ActiveCalls } from './active-calls.ts'
import type { AttemptResult, BridgeDeps } from './bridge.ts'
import { Bridge } from './bridge.ts'
import type { Call, Place } from './call.ts'
import type { Outcome } from './cascade.ts'
import { cascade, healthShown } from './cascade.ts'
import { callRecord, openCall } from './record/cdr.ts'
import type { End } from './record/end-reason.ts'
import { cutStatus, reasonHeader } from './record/end-reason.ts'
import { GrantTimer } from './grant-timer.ts'
import { objectionTo } from './objection.ts'
import type { Reading } from './reading.ts'
import { readInvite, startOf } from './reading.ts'
import type { Destination, RouteDeps } from './route.ts'
import { emergencyRoute, innerRoute, retryAfter, routeCall } from './route.ts'
import { callExtension } from './phones/call-extension.ts'
import { recognize, type RecognizeDeps } from './phones/recognize.ts'
import { respondToPhone } from './phones/register.ts'
import type { Answer, SipRequest } from './sip/drachtio.ts'
import { Invite } from './legs/invite.ts'
import type { Log } from './sip/srf-client.ts'

export interface InboundCallDeps extends BridgeDeps, RouteDeps, RecognizeDeps {
  readonly routing: RouteDeps['routing'] & RecognizeDeps['routing']
  readonly registrar: RouteDeps['registrar'] & RecognizeDeps['registrar']
  /** A call is refused because nobody knows its source. */
  readonly onUnknownSource: (address: string) => void
  readonly calls: ActiveCalls
  readonly charging: Charging
  readonly newUuid: () => string
  readonly log: Log
}

/** Handles one INVITE outside any dialog. Resolves when its record is stored; a challenge has none. */
export async function handleInboundCall(
  request: SipRequest,
  answer: Answer,
  deps: InboundCallDeps,
): Promise<void> {
  const recognized = recognize(request, deps)
  if (recognized.kind === 'challenged') return respondToPhone(answer, recognized.answer)
  const { origin } = recognized
  if (origin.kind === 'unknown') deps.onUnknownSource(request.source_address)
  const callUuid = deps.newUuid()
  const reading = readInvite(request, callUuid, origin, deps.routing)
  const call = deps.calls.begin(startOf(request, reading, deps.now()))
  const invite = new Invite(request, answer, () => call.stop({ kind: 'cancelled' }))
  const end = await outcomeOf(invite, call, reading, deps).catch((error: unknown) =>
    broken(invite, call, error, deps),
  )
  await store(call, end, deps)
}

/** A bug ends one call, not the process. */
function broken(invite: Invite, call: Call, error: unknown, deps: InboundCallDeps): End {
  deps.log('error', 'a call failed', { callUuid: call.start.callUuid, error })
  const end: End = { kind: 'refused', status: 500, reason: 'Server Internal Error', code: 'fault' }
  call.stop(end)
  refuse(invite, end, deps)
  return end
}

async function outcomeOf(
  invite: Invite,
  call: Call,
  reading: Reading,
  deps: InboundCallDeps,
): Promise<End> {
  const outcome = await connect(invite, call, reading, deps)
  if (outcome.kind === 'answered') return talk(call, outcome.ended, deps)
  refuse(invite, outcome.end, deps)
  return outcome.end
}

async function connect(
  invite: Invite,
  call: Call,
  reading: Reading,
  deps: InboundCallDeps,
): Promise<Outcome> {
  const emergency = emergencyRoute(reading, deps)
  const isEmergency = emergency !== undefined
  const objection = objectionTo(invite, { ...reading, isEmergency }, deps)
  if (objection) return { kind: 'over', end: objection }

  const inner = emergency ? undefined : innerRoute(reading, deps)
  if (inner) call.account = unpaid(inner.candidates[0].tenantId)
  const denial = emergency || inner ? undefined : await authorize(call, reading, deps)
  const refusal = call.stopped ?? denial
  if (refusal) return { kind: 'over', end: refusal }

  const route = emergency ?? inner ?? routeCall(reading, call.account, deps)
  call.direction = route.direction
  if (route.kind === 'refused') return { kind: 'over', end: route.end }

  const attempt = (destination: Destination) => {
    const isAdmitted = place(call, reading, destination, isEmergency, deps)
    return isAdmitted ? tryDestination(destination, invite, call, reading, deps) : undefined
  }
  return cascade(route.candidates, attempt, () => call.stopped)
}

/** A call inside a house belongs to a tenant, and nobody pays for it. */
const unpaid = (tenantId: number): Account => ({
  ...{ customerId: null, tenantId, ratePrefix: null, currency: null, isUnauthorizedByOcs: false },
})

/** Undefined: the call may go on. */
async function authorize(
  call: Call,
  reading: Reading,
  deps: InboundCallDeps,
): Promise<End | undefined> {
  const { origin, callerNumber: caller, calledNumber: callee } = reading
  const { callUuid, startedAt } = call.start
  const customerId = 'customerId' in origin ? origin.customerId : null
  const verdict = await deps.charging.authorize({ callUuid, caller, callee, customerId, startedAt })
  if (verdict.kind === 'unreachable')
    return {
      kind: 'refused',
      status: 503,
      reason: 'Service Unavailable',
      code: 'ocs_unreachable',
      headers: retryAfter(verdict),
    }
  call.account = verdict.account
  if (verdict.kind === 'denied')
    return {
      kind: 'refused',
      status: 402,
      reason: 'Payment Required - Insufficient Funds',
      code: verdict.code,
    }
  call.grantedSeconds = verdict.grantedSeconds
  return undefined
}

/** Counts the call where it is tried next. False: the carrier takes no more. */
function place(
  call: Call,
  reading: Reading,
  destination: Destination,
  isEmergency: boolean,
  deps: InboundCallDeps,
): boolean {
  const { origin } = reading
  const from: Place = {
    setId: null,
    nodeId: null,
    node: null,
    carrierId: origin.kind === 'carrier' ? origin.carrierId : null,
    carrier: origin.kind === 'carrier' ? origin.name : null,
  }
  if (destination.kind === 'node') {
    const { setId, nodeId, uri } = destination
    deps.calls.place(call, { ...from, setId, nodeId, node: uri })
    return true
  }
  // First away from where it was tried before, so that it does not stand in its own way.
  deps.calls.place(call, from)
  if (destination.kind === 'extension') return true
  const { carrierId, carrierName } = destination
  if (!deps.routing.admitCarrierCall(carrierId, isEmergency)) return false
  deps.calls.place(call, { ...from, carrierId, carrier: carrierName })
  return true
}

async function tryDestination(
  destination: Destination,
  invite: Invite,
  call: Call,
  reading: Reading,
  deps: InboundCallDeps,
): Promise<AttemptResult> {
  if (destination.kind === 'extension')
    return callExtension(destination, { call, invite, announced: reading }, deps)
  const bridge = new Bridge(deps, call, invite, reading, destination.uri)
  const result = await bridge.run(destination)
  call.attempts.push(bridge.record)
  const health = healthShown(result)
  if (health && destination.kind === 'node')
    deps.dispatcher.reportOutcome(destination.nodeId, health)
  return result
}

async function talk(call: Call, ended: Promise<End>, deps: InboundCallDeps): Promise<End> {
  const answeredAt = call.answeredAt ?? deps.now()
  deps.charging.answered(openCall(call, answeredAt))
  const grant = new GrantTimer(deps, call, answeredAt)
  const end = await ended
  grant.stop()
  return end
}

function refuse(invite: Invite, end: End, deps: InboundCallDeps): void {
  switch (end.kind) {
    case 'refused':
    case 'rejected':
      return invite.refuse(end.status, end.reason, end.headers)
    case 'no-answer':
      return invite.refuse(480, 'Temporarily Unavailable')
    case 'cut': {
      const retry = end.by === 'system' ? retryAfter(deps) : {}
      const headers = { Reason: reasonHeader(end), ...retry }
      return invite.refuse(cutStatus(end.by), undefined, headers)
    }
    case 'cancelled':
    case 'hung-up':
  }
}

async function store(call: Call, end: End, deps: InboundCallDeps): Promise<void> {
  const record = callRecord(call, end, deps.now())
  try {
    await deps.charging.report(record)
  } catch (error) {
    deps.log('error', 'a call record could not be stored', { record, error })
  }
  deps.calls.finish(call)
  deps.log('info', 'call', {
    callUuid: record.callUuid,
    direction: record.direction,
    caller: record.callerNumber,
    called: record.calledNumber,
    disposition: record.disposition,
    sipCode: record.sipCode,
    hangupCause: record.hangupCause,
    hangupBy: record.hangupBy,
    billsec: record.billsec,
    node: record.node,
    carrier: record.carrier,
    source: record.sourceAddress,
    denialCode: record.denialCode,
    attempts: record.attempts.length,
  })
}
