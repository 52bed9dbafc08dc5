/**
 * A blind transfer: Tollgate calls the transfer target for the transferee (RFC 5589 §6). The new
 * call has its own record, on the account of the transferor; the transferee's call continues with
 * its own record, because its leg is still charged.
 */
import type { TransferRequest, TransferResult } from '../../../schema/contracts/calls.ts'
import type { CallDeps } from '../call-deps.ts'
import { askInvite } from '../hooks/ask-invite.ts'
import { oppositeSide } from '../call-machine/calling.ts'
import type { LiveCall, LiveLeg } from '../call-machine/state.ts'
import { type End, refused } from '../cdr/end-reason.ts'
import { admitAndDial, onFault, planCall, refuse, type RoutePlan } from '../inbound/admission.ts'
import { type IncomingInvite, startOf } from '../inbound/incoming-invite.ts'
import { asOffer, canBeOffered } from '../sdp.ts'
import { isNetwork, type KnownFirstCaller } from '../identity/first-caller.ts'
import { type Party, partyOfNumber } from '../sip-headers.ts'
import { type Identity, identityOf } from './identity.ts'
import { escapeUser } from '../../../schema/sip/index.ts'

/** The transfer target (RFC 5589). */
export interface TransferTarget {
  /** The number in normal form, unless Replaces names a call. */
  readonly number: string
  /** User part, still escaped. */
  readonly user: string
  /** The domain without port. */
  readonly domain: string
  /** The target is a `sips:` URI. */
  readonly isSecure?: boolean
}

export interface TransferPlan {
  /** The leg that leaves when the new call is answered. */
  readonly transferor: LiveLeg
  readonly transferee: LiveLeg
  readonly target: TransferTarget
  /** The identity and account of the new call. */
  readonly payer: Identity
  /** A REFER asked for it, whose sender gets NOTIFYs. */
  readonly isReferred: boolean
  /** The transferor as the new party sees it. Undefined: none. */
  readonly referrer?: Identity | undefined
  /** A customer of another tenant is not made to pay; null or undefined: any customer. */
  readonly tenantId?: number | null
}

export type TransferStart =
  | { readonly kind: 'transferring'; readonly callUuid: string }
  /** There is no payer, or the call is not allowed; `code` as in a record's `denial_code`. */
  | { readonly kind: 'denied'; readonly code: string }

/** A longer chain of transfers is a loop of machines. */
const MAX_TRANSFERS = 10

/** Resolves when the new call is admitted or denied. NOTIFYs and its record have the rest. */
export async function transferToNewCall(
  requested: TransferPlan,
  deps: CallDeps,
): Promise<TransferStart> {
  const plan = { ...requested, target: dialledBy(requested.target, deps) }
  const { transferor, transferee, target, isReferred } = plan
  const dialled = {
    ...transferInvite(plan, deps.newUuid()),
    referredBy: referredBy(plan, deps),
    firstCaller: transferredCaller(plan, deps),
  }
  const call = begin(plan, dialled, deps)
  const { callUuid } = dialled
  deps.dispatch({
    type: 'transferTo',
    transferor: transferor.id,
    transferee: transferee.id,
    callUuid,
    destination: target.number,
    offered: dialled.body ?? '',
    isReferred,
  })
  const asking = askInvite(call, dialled, { kind: 'transfer' }, deps)
  const asked = asking && (await asking)
  const invite = asked?.kind === 'goes_on' ? asked.invite : dialled
  const routePlan = planCall('transfer', invite, deps)
  const rejection = asked?.kind === 'ended' ? asked.end : rejectionFor(call, routePlan)
  if (rejection) refuse(call, rejection, deps)
  // A hook may have chosen what the target sees.
  const isShownByHook = invite.from !== dialled.from
  const shown = isShownByHook ? invite : presented(plan, invite, routePlan, deps)
  const refusal =
    rejection ??
    (await admitAndDial(call, invite, routePlan, deps, shown).catch(onFault(call, deps)))
  if (refusal === undefined) return { kind: 'transferring', callUuid }
  const code = 'code' in refusal && refusal.code !== null ? refusal.code : 'not_allowed'
  return { kind: 'denied', code }
}

function dialledBy(target: TransferTarget, { routing }: CallDeps): TransferTarget {
  const number = routing.dialledNumber(target.number)
  return number === target.number ? target : { ...target, number, user: escapeUser(number) }
}

/** How many transfers, one after the other, lead to the new call. */
export function transfersBeforeOf(
  { transferor, transferee }: Pick<TransferPlan, 'transferor' | 'transferee'>,
  { calls }: CallDeps,
): number {
  const before = [transferor, transferee].flatMap(({ callUuid }) => calls.call(callUuid) ?? [])
  return Math.max(...before.map(({ transfersBefore }) => transfersBefore)) + 1
}

export function begin(plan: TransferPlan, invite: IncomingInvite, deps: CallDeps): LiveCall {
  const { transferee, tenantId = null } = plan
  const { calls, now } = deps
  return calls.begin({
    start: { ...startOf(invite, 'transfer', now()), isOurs: true },
    near: transferee.id,
    callerPeer: calls.call(transferee.callUuid)?.peers[transferee.side] ?? null,
    payerTenantId: tenantId,
    transfersBefore: transfersBeforeOf(plan, deps),
  })
}

export function rejectionFor(
  { payerTenantId, transfersBefore }: LiveCall,
  { isEmergency, route, tenantId, refusal }: RoutePlan,
): End | undefined {
  const tenant = route === undefined ? null : tenantId
  if (!isEmergency && tenant !== null && payerTenantId !== null && tenant !== payerTenantId)
    return refused(403, 'Forbidden', 'payer_of_other_tenant')
  if (transfersBefore > MAX_TRANSFERS) return refused(483, 'Too Many Hops', 'too_many_hops')
  return refusal
}

export function transferInvite(
  { transferor, transferee, target, payer }: TransferPlan,
  callUuid: string,
): IncomingInvite {
  const { number, name, origin } = payer
  const { user: calledUser, number: calledNumber, domain, isSecure = false } = target
  return {
    origin,
    callUuid,
    calledUser,
    calledNumber,
    domain,
    isSecure,
    callId: transferor.callId,
    headers: {},
    body: asOffer(transferee.media) || undefined,
    from: partyOfNumber(number, domain, name),
    callerNumber: number,
    callerName: name || null,
    hopsLeft: 70,
  }
}

/** Referred-By (RFC 3892) as authenticated, not as the phone wrote it. */
function referredBy({ referrer }: TransferPlan, { client }: CallDeps): Party | undefined {
  if (referrer === undefined) return undefined
  const { origin, name, number } = referrer
  const host = origin.kind === 'extension' ? origin.domain : client.ownHost
  return partyOfNumber(number, host, name)
}

/** A party that was called is known by what was dialled: only who has called is a first caller. */
function transferredCaller(
  { transferee: { callUuid, side }, payer }: TransferPlan,
  { calls }: CallDeps,
): KnownFirstCaller | undefined {
  const { start, origin } = calls.call(callUuid) ?? {}
  if (start === undefined || side !== 'caller') return undefined
  const { callerNumber: number, callerName, isPrivate = false } = start
  const sentAs = payer.number
  return { number, name: callerName ?? '', isPrivate, isVouched: isNetwork(origin), sentAs }
}

/**
 * Inside a tenant the target sees the transferee. Outside it sees the transferor: carriers refuse
 * numbers of other parties.
 */
export function presented(
  { transferee: { callUuid, side } }: TransferPlan,
  invite: IncomingInvite,
  { isEmergency, route }: RoutePlan,
  { calls }: CallDeps,
): IncomingInvite {
  const start = calls.call(callUuid)?.start
  if (isEmergency || route === undefined || start === undefined) return invite
  const { callerNumber, callerName, calledNumber } = start
  const number = side === 'caller' ? callerNumber : calledNumber
  const name = side === 'caller' ? (callerName ?? '') : ''
  return { ...invite, from: partyOfNumber(number, invite.domain, name) }
}

/** Resolves before the destination rings. The calls and their events have the result. */
export async function transferByApi(
  { callUuid, destination, moved }: TransferRequest,
  deps: CallDeps,
): Promise<TransferResult> {
  const { calls } = deps
  const call = calls.call(callUuid)
  if (call === undefined) return { kind: 'not_found' }
  if (call.end) return { kind: 'already_ending' }
  if (call.answeredAt === null) return { kind: 'not_answered' }
  const other = calls.leg(call.legs[oppositeSide(moved)])
  const transferee = calls.leg(call.legs[moved]) ?? (other && calls.partnerOf(other))
  const transferor = transferee && calls.partnerOf(transferee)
  if (!transferee || !transferor || !canBeOffered(transferee.media))
    return { kind: 'not_transferable' }
  if (calls.isTransferring(transferor, transferee)) return { kind: 'transfer_in_progress' }
  const tenantId = call.account?.tenantId ?? null
  const payer = payerOf(transferor, transferee, tenantId, deps)
  if (payer === undefined) return { kind: 'not_transferable' }
  const domain = payer.origin.kind === 'extension' ? payer.origin.domain : ''
  const target = { number: destination, user: escapeUser(destination), domain }
  const plan = { transferor, transferee, target, payer, tenantId, isReferred: false }
  return transferToNewCall(plan, deps)
}

/**
 * A transferor that is a phone pays, as with REFER; else the party that pays for its call now;
 * else the party that is ours: a node serves the number that was called, which may be a customer's.
 * No party of another tenant than the call's: API keys would spend its money.
 */
function payerOf(
  transferor: LiveLeg,
  transferee: LiveLeg,
  tenantId: number | null,
  deps: CallDeps,
): Identity | undefined {
  const candidates = [transferor, transferee].flatMap((leg) => {
    const call = deps.calls.call(leg.callUuid)
    const identity = call && identityOf(call, leg.side, deps)
    const isForeign = tenantId !== null && isOfOther(identity, tenantId)
    return identity === undefined || isForeign ? [] : [{ leg, identity }]
  })
  const chosen =
    candidates.find(
      ({ leg, identity }) => leg === transferor && identity.origin.kind === 'extension',
    ) ??
    candidates.find(({ leg }) => isPaying(leg, deps)) ??
    candidates.find(({ identity: { origin } }) => origin.kind !== 'trusted') ??
    candidates[0]
  return chosen?.identity
}

function isOfOther(identity: Identity | undefined, tenantId: number): boolean {
  if (identity?.origin.kind === 'proxy') return !identity.origin.tenantIds.includes(tenantId)
  return identity?.origin.kind === 'extension' && identity.origin.tenantId !== tenantId
}

function isPaying({ callUuid, side }: LiveLeg, { calls }: CallDeps): boolean {
  const call = calls.call(callUuid)
  return side === 'caller' && call?.isFree === false && call.account?.customerId != null
}
