/** Blind transfer from the API: one party of an answered call is connected to a number. */
import { escapeUser } from '../../sip-server/message/index.ts'
import type { TransferRequest, TransferResult } from '../../../schema/contracts/calls.ts'
import type { CallDeps } from '../call-deps.ts'
import { oppositeSide } from '../call-machine/parties.ts'
import type { LiveLeg } from '../call-machine/live.ts'
import { canBeOffered } from '../sdp/third-party.ts'
import { identityOf, type Identity } from './identity.ts'
import { transferToNewCall } from './transfer-call.ts'

/** Resolves before the destination rings; the calls and their events tell the result. */
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
  const found = [transferor, transferee].flatMap((leg) => {
    const call = deps.calls.call(leg.callUuid)
    const identity = call && identityOf(call, leg.side, deps)
    const isForeign = tenantId !== null && isOfOther(identity, tenantId)
    return identity === undefined || isForeign ? [] : [{ leg, identity }]
  })
  const chosen =
    found.find(({ leg, identity }) => leg === transferor && identity.origin.kind === 'extension') ??
    found.find(({ leg }) => isPaying(leg, deps)) ??
    found.find(({ identity: { origin } }) => origin.kind !== 'trusted') ??
    found[0]
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
