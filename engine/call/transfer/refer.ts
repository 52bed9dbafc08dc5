/** Handles REFER in a call (RFC 3515). */
import type { Replaces } from '../../sip-server/message/index.ts'
import type { CallDeps } from '../call-deps.ts'
import type { Command, MachineEvent } from '../call-machine/protocol.ts'
import type { LiveCall } from '../call-machine/live.ts'
import { wantsPrivacy } from '../dialing/outgoing-invite.ts'
import { canBeOffered } from '../sdp/third-party.ts'
import { partyOf } from '../sip/caller-id.ts'
import { callerIdentity, identityOf, isSame } from './identity.ts'
import { readRefer } from './refer-request.ts'
import { attendAtOtherNode, type AttendedTransfer } from './to-other-node.ts'
import { transferToNewCall } from './transfer-call.ts'

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
  const from = partyOf(headers['from'] ?? '')
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
