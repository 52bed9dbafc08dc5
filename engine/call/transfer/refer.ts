/** Handles REFER in a call (RFC 3515). */
import type { CallDeps } from '../call-deps.ts'
import type { Command, MachineEvent } from '../call-machine/protocol.ts'
import type { LiveCall, LiveLeg } from '../call-machine/state.ts'
import { wantsPrivacy } from '../dialing/outgoing-invite.ts'
import { admitFree, dial, refuse } from '../inbound/admission.ts'
import { canBeOffered } from '../sdp.ts'
import { partyOf as readParty } from '../sip-headers.ts'
import { callerIdentity, type Identity, identityOf, isSame, partyOf } from './identity.ts'
import { readRefer, type Target } from './refer-request.ts'
import {
  begin,
  inviteFor,
  presented,
  rejectionFor,
  transfersBeforeOf,
  transferToNewCall,
} from './transfer-call.ts'
import type { Replaces } from '../../sip-server/message/index.ts'

/** Each failed transfer leaves a record. */
const MAX_FAILED = 20

/** Handles the request of a transferor, refused or begun. */
export function takeRefer(
  { legId, requestId, headers }: Extract<Command, { readonly type: 'refer' }>,
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
  const from = readParty(headers['from'] ?? '')
  const referrer = wantsPrivacy({ from, headers }) ? undefined : payer
  const plan = { transferor, transferee, target, payer, referrer, isReferred: true }
  // A bug ends one transfer, not the process.
  return void transferToNewCall(plan, deps).catch((error: unknown) => {
    deps.log('error', 'a transfer failed', { error })
    dispatch({ type: 'referFailed', legId, status: 500, reason: 'Server Internal Error' })
  })
}

/** The call that the transferor has made meanwhile may be on another node. */
function attend(transfer: AttendedTransfer, deps: CallDeps): void {
  if (!isKnownHere(transfer.replaces, deps) && attendAtOtherNode(transfer, deps)) return
  deps.dispatch(attended(transfer, deps))
}

const isKnownHere = ({ callId, toTag, fromTag }: Replaces, { calls }: CallDeps): boolean =>
  calls.unanswered(callId, fromTag) !== undefined ||
  calls.legIn(callId, toTag, fromTag) !== undefined ||
  calls.hasEnded(callId)

/** RFC 3891 §3, asked of us in the place of the party that the transferor has called meanwhile. */
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
 * An attended transfer whose other call another node has (RFC 5589 §7.3): this node calls that one for the transferee,
 * with Replaces, and there the transferee takes the place of the transferor. Each of the two calls keeps its record and
 * its account on its node. What connects the nodes has a record of its own on both, and is free: no destination is
 * called by it.
 */
export interface AttendedTransfer {
  readonly transferor: LiveLeg
  readonly transferee: LiveLeg
  readonly target: Target
  readonly payer: Identity
  readonly replaces: Replaces
}

/** False: there is no other node that could have the dialog. */
function attendAtOtherNode(transfer: AttendedTransfer, deps: CallDeps): boolean {
  const { transferor, transferee, target, payer, replaces } = transfer
  const { callUuid: itsUuid } = transferee
  const transfersBefore = transfersBeforeOf(transfer, deps)
  const facts = { party: partyOf(payer), transfersBefore, callUuid: itsUuid }
  const candidates = deps.otherNodes?.candidates(replaces, facts) ?? []
  if (candidates.length === 0) return false
  const tenantId = deps.calls.call(transferor.callUuid)?.account?.tenantId ?? null
  const plan = { transferor, transferee, target, payer, isReferred: true, tenantId }
  const invite = inviteFor(plan, deps.newUuid())
  const { callUuid } = invite
  const route = { kind: 'candidates', direction: 'internal', candidates } as const
  const routePlan = { isEmergency: false, route, tenantId }
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
  const rejection = rejectionFor(call, routePlan, deps)
  if (rejection) refuse(call, rejection, deps)
  else {
    admitFree(call, payer.origin, tenantId, deps)
    dial(presented(plan, invite, routePlan, deps), route, false, deps)
  }
  return true
}
