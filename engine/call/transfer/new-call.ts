/**
 * A blind transfer: somebody is called for a participant who stays (RFC 5589 §6, done by us in his
 * place). The new call is a call of its own, on the account of whoever asked; the call that the
 * participant came from goes on with its own record, because his leg still costs what it costs.
 */
import type { Call, CallStart } from '../call.ts'
import type { InboundCallDeps } from '../inbound/inbound-call.ts'
import { closedBy } from '../inbound/validation.ts'
import type { Participant } from '../legs/conversation.ts'
import { asOffer } from '../sdp/third-party.ts'
import type { Reading } from '../inbound/incoming-invite.ts'
import type { End } from '../cdr/end-reason.ts'
import { retryAfter } from '../inbound/route.ts'
import { admit, freeRoute, type FreeRoute } from '../inbound/admission.ts'
import { reach } from '../setup/reach.ts'
import { store, talk } from '../setup/talk.ts'
import { userPart, type Party } from '../sip/caller-id.ts'
import { Handover, type TransferHooks } from './handover.ts'
import type { Identity } from './identity.ts'
import type { Target } from './refer-request.ts'

export interface TransferPlan {
  /** Who leaves when the new call is answered. */
  readonly leaver: Participant
  readonly stayer: Participant
  readonly target: Target
  /** In whose name and at whose expense. */
  readonly payer: Identity
  readonly hooks: TransferHooks
  /** Whom the new party sees as the one who transfers; undefined: nobody. */
  readonly referrer?: Identity | undefined
  /** Nobody of another tenant may be made to pay; null or undefined: whoever it is. */
  readonly tenantId?: number | null
}

export type TransferStart =
  | { readonly kind: 'transferring'; readonly callUuid: string }
  /** Nobody pays for it, or nobody may call there; `code` as in a record's `denial_code`. */
  | { readonly kind: 'denied'; readonly code: string }

/** A chain of transfers that goes on and on is a loop of machines. */
const MAX_TRANSFERS = 10

/** Resolves when the new call is admitted, or not; the rest is told by `hooks` and by its record. */
export async function transferToNewCall(
  plan: TransferPlan,
  deps: InboundCallDeps,
): Promise<TransferStart> {
  const reading = { ...readingOf(plan, deps.newUuid()), referredBy: referredBy(plan, deps) }
  const free = freeRoute(reading, deps)
  const shown = presented(plan, reading, free)
  const call = deps.calls.begin(startOf(reading, deps.now()))
  call.near = plan.stayer.leg.dialog.agent
  const before = [plan.leaver, plan.stayer].map(({ conversation }) => conversation.call)
  const { conversation, side } = plan.stayer
  call.peers.caller = conversation.call.peers[side]
  call.payerTenantId = plan.tenantId ?? null
  call.transfersBefore = Math.max(...before.map(({ transfersBefore }) => transfersBefore)) + 1
  return new NewCall(plan, call, shown, deps).start(free)
}

class NewCall {
  readonly #call: Call
  readonly #reading: Reading
  readonly #deps: InboundCallDeps
  readonly #handover: Handover

  constructor(plan: TransferPlan, call: Call, reading: Reading, deps: InboundCallDeps) {
    this.#call = call
    this.#reading = reading
    this.#deps = deps
    this.#handover = new Handover(
      { ...plan, destination: plan.target.number },
      call,
      reading.body ?? '',
      deps,
    )
  }

  async start(free: FreeRoute): Promise<TransferStart> {
    const { callUuid } = this.#call.start
    const refusal = this.#objection(free) ?? (await this.#admitted(free))
    if (refusal) {
      void this.#end(this.#failed(refusal))
      const code = 'code' in refusal && refusal.code !== null ? refusal.code : 'not_allowed'
      return { kind: 'denied', code }
    }
    void this.#run(free)
    return { kind: 'transferring', callUuid }
  }

  #objection({ isEmergency, route, tenantId }: FreeRoute): End | undefined {
    const { calls } = this.#deps
    const { payerTenantId } = this.#call
    const house = route === undefined ? null : tenantId
    if (!isEmergency && house !== null && payerTenantId !== null && house !== payerTenantId)
      return { kind: 'refused', status: 403, reason: 'Forbidden', code: 'payer_of_other_tenant' }
    if (this.#call.transfersBefore > MAX_TRANSFERS)
      return { kind: 'refused', status: 483, reason: 'Too Many Hops', code: 'too_many_hops' }
    const code = isEmergency ? undefined : closedBy(calls)
    if (code === undefined) return undefined
    const headers = retryAfter(this.#deps)
    return { kind: 'refused', status: 503, reason: 'Service Unavailable', code, headers }
  }

  #admitted(free: FreeRoute): Promise<End | undefined> {
    const admitted = admit(this.#call, this.#reading, free, this.#deps)
    return admitted.catch((error: unknown) => this.#fault(error))
  }

  async #run(free: FreeRoute): Promise<void> {
    const end = await this.#outcome(free).catch((error: unknown) =>
      this.#failed(this.#fault(error)),
    )
    this.#call.stop(end)
    await this.#end(end)
  }

  /** A bug ends one call, not the process. */
  #fault(error: unknown): End {
    const { callUuid } = this.#call.start
    this.#deps.log('error', 'a call failed', { callUuid, error })
    return { kind: 'refused', status: 500, reason: 'Server Internal Error', code: 'fault' }
  }

  async #outcome(free: FreeRoute): Promise<End> {
    const outcome = await reach(this.#handover, this.#call, this.#reading, free, this.#deps)
    if (outcome.kind === 'over') return this.#failed(outcome.end)
    return talk(this.#call, outcome.ended, this.#deps)
  }

  #end(end: End): Promise<void> {
    return store(this.#call, end, this.#deps)
  }

  #failed(end: End): End {
    const { status, reason } = answerOf(end)
    this.#handover.refused(status, reason)
    return end
  }
}

/** What the transferor hears. */
function answerOf(end: End): { readonly status: number; readonly reason: string } {
  switch (end.kind) {
    case 'refused':
    case 'rejected':
      return { status: end.status, reason: end.reason }
    case 'no-answer':
      return { status: 480, reason: 'Temporarily Unavailable' }
    case 'cancelled':
    case 'hung-up':
      return { status: 487, reason: 'Request Terminated' }
    case 'cut':
    default:
      return { status: 503, reason: 'Service Unavailable' }
  }
}

function startOf(reading: Reading, startedAt: number): CallStart {
  const { callUuid, callId, callerNumber, callerName, calledNumber } = reading
  return {
    ...{ callUuid, callId, callerNumber, callerName, calledNumber },
    ...{ sourceAddress: 'transfer', isOurs: true, startedAt },
  }
}

function readingOf({ leaver, stayer, target, payer }: TransferPlan, callUuid: string): Reading {
  const { number, name, origin } = payer
  const { user: calledUser, number: calledNumber, domain, isSecure = false } = target
  return {
    ...{ origin, callUuid, calledUser, calledNumber, domain, isSecure },
    callId: leaver.leg.dialog.sip.callId,
    headers: {},
    body: asOffer(stayer.leg.media) || undefined,
    from: { name, user: userPart(number), host: domain, number },
    callerNumber: number,
    callerName: name || null,
    hopsLeft: 70,
  }
}

/** RFC 3892: of what a phone says about itself, nothing is taken. */
function referredBy({ referrer }: TransferPlan, { client }: InboundCallDeps): Party | undefined {
  if (referrer === undefined) return undefined
  const { origin, name, number } = referrer
  const host = origin.kind === 'extension' ? origin.domain : client.ownHost
  return { name, user: userPart(number), host, number }
}

/**
 * Inside the house the called party sees whom it will talk to. Outside it sees who transfers: carriers
 * take no numbers that are not their customer's.
 */
function presented(
  { stayer: { conversation, side } }: TransferPlan,
  reading: Reading,
  free: FreeRoute,
): Reading {
  if (free.isEmergency || free.route === undefined) return reading
  const { callerNumber, callerName, calledNumber } = conversation.call.start
  const number = side === 'caller' ? callerNumber : calledNumber
  const name = side === 'caller' ? (callerName ?? '') : ''
  return { ...reading, from: { name, user: userPart(number), host: reading.domain, number } }
}
