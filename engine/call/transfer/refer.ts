/** Handles REFER in a call (RFC 3515). */
import type { CallDeps } from '../call-deps.ts'
import type { CallCommand, MachineEvent } from '../call-machine/protocol.ts'
import type { LiveCall, LiveLeg } from '../call-machine/state.ts'
import { wantsPrivacy } from '../identity/privacy.ts'
import { admitFree, closedRefusal, dial, refuse } from '../inbound/admission.ts'
import { canBeOffered } from '../sdp.ts'
import { answerToIrregular, calledOf, domainOf, partyOf } from '../sip-headers.ts'
import type { Headers } from '../signalling.ts'
import { callerIdentity, type Identity, identityOf, isSame, partyKeyOf } from './identity.ts'
import {
  begin,
  transferInvite,
  presented,
  rejectionFor,
  type TransferTarget,
  transfersBeforeOf,
  transferToNewCall,
} from './transfer-call.ts'
import {
  parseReplaces,
  readSoleUri,
  readUri,
  type Replaces,
  unescapeText,
} from '../../../schema/sip/index.ts'

/** Each failed transfer leaves a record. */
const MAX_FAILED = 20

/** Begins or refuses the transfer that a REFER asks for. */
export function takeRefer(
  { legId, requestId, headers }: Extract<CallCommand, { readonly type: 'refer' }>,
  deps: CallDeps,
): void {
  const { calls, dispatch } = deps
  const refuse = (status: number, reason?: string): void =>
    dispatch({ type: 'referRefused', legId, requestId, status, reason })
  const refer = readRefer(headers)
  if (refer.kind === 'refused') return refuse(refer.status, refer.reason)
  const transferor = calls.leg(legId)
  const call = transferor && calls.call(transferor.callUuid)
  if (!transferor || !call) return refuse(481)
  const payer = identityOf(call, transferor.side, deps)
  if (payer === undefined || call.failedTransfers >= MAX_FAILED) return refuse(403)
  const transferee = calls.partnerOf(transferor)
  if (transferee === undefined || calls.isTransferring(transferor, transferee)) return refuse(491)
  if (!canBeOffered(transferee.media)) return refuse(488)
  const { id, isSilent, target, replaces } = refer
  dispatch({ type: 'referAccepted', legId, requestId, id, isSilent })
  if (replaces) return attend({ transferor, transferee, target, payer, replaces }, deps)
  const from = partyOf(headers['from'] ?? '')
  const referrer = wantsPrivacy({ from, headers }) ? undefined : payer
  const plan = { transferor, transferee, target, payer, referrer, isReferred: true }
  // A bug ends one transfer, not the process.
  return void transferToNewCall(plan, deps).catch((error: unknown) => {
    deps.log('error', 'a transfer failed', { error })
    dispatch({ type: 'referFailed', legId, status: 500, reason: 'Server Internal Error' })
  })
}

/** The other call of the transferor may be on another instance. */
function attend(transfer: AttendedTransfer, deps: CallDeps): void {
  if (!isKnownHere(transfer.replaces, deps) && attendAtOtherInstance(transfer, deps)) return
  deps.dispatch(attended(transfer, deps))
}

const isKnownHere = ({ callId, toTag, fromTag }: Replaces, { calls }: CallDeps): boolean =>
  calls.unanswered(callId, fromTag) !== undefined ||
  calls.legIn(callId, toTag, fromTag) !== undefined ||
  calls.hasEnded(callId)

/** The checks of RFC 3891 §3, made here for the party that the transferor has consulted. */
function attended(plan: AttendedTransfer, deps: CallDeps): MachineEvent {
  const { transferor, transferee, payer, replaces } = plan
  const { calls } = deps
  const { callId, toTag, fromTag, isEarlyOnly } = replaces
  const failed = (status: number, reason: string): MachineEvent => ({
    type: 'referFailed',
    legId: transferor.id,
    status,
    reason,
  })
  const ringing = calls.unanswered(callId, fromTag)
  if (ringing) return semiAttended(plan, ringing, failed)
  const consulting = calls.legIn(callId, toTag, fromTag)
  const call = consulting && calls.call(consulting.callUuid)
  const owner = call && identityOf(call, consulting.side, deps)
  const target = consulting && calls.partnerOf(consulting)
  const isOwn = owner !== undefined && isSame(owner, payer)
  const isFirst = consulting === transferor || target === transferor
  if (!consulting || !isOwn || !target || isFirst)
    return failed(481, 'Call/Transaction Does Not Exist')
  if (isEarlyOnly) return failed(486, 'Busy Here')
  if (calls.isTransferring(consulting, target)) return failed(491, 'Request Pending')
  return {
    type: 'attend',
    transferor: transferor.id,
    transferee: transferee.id,
    consulting: consulting.id,
    target: target.id,
  }
}

/** The called party has not answered yet: the transferee is connected as soon as it does. */
function semiAttended(
  { transferor, transferee, payer }: AttendedTransfer,
  ringing: LiveCall,
  failed: (status: number, reason: string) => MachineEvent,
): MachineEvent {
  const owner = callerIdentity(ringing)
  const { calling, offer, start } = ringing
  const canGiveWay = calling.kind === 'invite' && calling.replacedBy === undefined
  if (!canGiveWay || owner === undefined || !isSame(owner, payer))
    return failed(481, 'Call/Transaction Does Not Exist')
  // The called party would make the offer, which the transferee would have to answer in our ACK.
  if (offer === undefined) return failed(488, 'Not Acceptable Here')
  return {
    type: 'transferTo',
    transferor: transferor.id,
    transferee: transferee.id,
    callUuid: start.callUuid,
    destination: start.calledNumber,
    offered: offer,
    isReferred: true,
  }
}

/**
 * An attended transfer whose other call another instance has (RFC 5589 §7.3): this instance calls
 * that one for the transferee, with Replaces, and there the transferee takes the place of the
 * transferor. Each of the two calls keeps its record and its account on its instance. The call
 * between the instances has a record of its own on both, and is free, because it calls no
 * destination.
 */
export interface AttendedTransfer {
  readonly transferor: LiveLeg
  readonly transferee: LiveLeg
  readonly target: TransferTarget
  readonly payer: Identity
  readonly replaces: Replaces
}

/** False: there is no other instance that could have the dialog. */
function attendAtOtherInstance(transfer: AttendedTransfer, deps: CallDeps): boolean {
  const { transferor, transferee, target, payer, replaces } = transfer
  const { callUuid: itsUuid } = transferee
  const transfersBefore = transfersBeforeOf(transfer, deps)
  const facts = { party: partyKeyOf(payer), transfersBefore, callUuid: itsUuid }
  const candidates = deps.otherInstances?.candidates(replaces, facts) ?? []
  if (candidates.length === 0) return false
  const tenantId = deps.calls.call(transferor.callUuid)?.account?.tenantId ?? null
  const plan = { transferor, transferee, target, payer, isReferred: true, tenantId }
  const invite = transferInvite(plan, deps.newUuid())
  const { callUuid } = invite
  const route = { kind: 'candidates', direction: 'internal', candidates } as const
  const routePlan = { isEmergency: false, route, tenantId, refusal: closedRefusal(deps) }
  const call = begin(plan, invite, deps)
  deps.dispatch({
    type: 'transferTo',
    transferor: transferor.id,
    transferee: transferee.id,
    callUuid,
    destination: target.number,
    offered: invite.body ?? '',
    isReferred: true,
  })
  const rejection = rejectionFor(call, routePlan)
  if (rejection) refuse(call, rejection, deps)
  else {
    admitFree(call, payer.origin, tenantId, deps)
    dial(presented(plan, invite, routePlan, deps), route, false, deps)
  }
  return true
}

// Reads the headers of a REFER (RFC 3515, RFC 4488).

type ReferRequest =
  | {
      readonly kind: 'refer'
      readonly target: TransferTarget
      /** The call whose other party is meant: an attended transfer. */
      readonly replaces: Replaces | undefined
      /** RFC 4488: the transferor asks for no NOTIFY. */
      readonly isSilent: boolean
      /** Number of the REFER, which names its subscription (RFC 3515 §2.4.6). */
      readonly id: string
    }
  | { readonly kind: 'refused'; readonly status: number; readonly reason: string }

const refused = (status: number, reason: string): ReferRequest => ({
  kind: 'refused',
  status,
  reason,
})
const badReferTo = refused(400, 'Bad Refer-To')

export function readRefer(headers: Headers): ReferRequest {
  const uri = readSoleUri(headers['refer-to'] ?? '')
  if (uri === undefined) return badReferTo
  const { scheme, params, headers: embedded } = readUri(uri)
  if (scheme === '') return badReferTo
  if (!schemes.has(scheme)) return refused(416, 'Unsupported URI Scheme')
  // RFC 3515 §2.1 lets a REFER ask for any method; we place calls.
  const method = /;method=([^;]*)/i.exec(params)?.[1] ?? 'INVITE'
  if (method.toUpperCase() !== 'INVITE') return refused(603, 'Decline')
  const embeddedText = embeddedReplaces(embedded)
  const replaces = embeddedText === undefined ? undefined : parseReplaces(embeddedText)
  if (embeddedText !== undefined && replaces === undefined) return badReferTo
  const { number, user, host, irregular } = calledOf(uri)
  if (replaces === undefined) {
    if (irregular) return { kind: 'refused', ...answerToIrregular[irregular] }
    if (number === '') return badReferTo
  }
  return {
    kind: 'refer',
    target: {
      number,
      user,
      domain: domainOf({ host }),
      ...(scheme === 'sips' && { isSecure: true }),
    },
    replaces,
    isSilent: headers['refer-sub']?.split(';', 1)[0]?.trim().toLowerCase() === 'false',
    id: String(Number.parseInt(headers['cseq'] ?? '0', 10)),
  }
}

const schemes = new Set(['sip', 'sips', 'tel'])

/** RFC 3261 §19.1.1: headers of a URI, escaped. */
function embeddedReplaces(headers: string): string | undefined {
  for (const header of headers.split('&')) {
    const equals = header.indexOf('=')
    if (header.slice(0, equals).toLowerCase() !== 'replaces') continue
    return unescapeText(header.slice(equals + 1)) ?? ''
  }
  return undefined
}
