/** Blind transfer from the API: one party of an answered call is given somebody else to talk to. */
import type { TransferRequest, TransferResult } from '../../../schema/contracts/calls.ts'
import type { InboundCallDeps } from '../inbound/inbound-call.ts'
import { isTransferring, otherSide, type Participant } from '../legs/conversation.ts'
import { userPart } from '../sip/caller-id.ts'
import { identityOf, type Identity } from './identity.ts'
import { transferToNewCall } from './new-call.ts'

/** Resolves before anybody rings; what becomes of it is told by the calls. */
export async function transferByApi(
  { callUuid, destination, moved }: TransferRequest,
  deps: InboundCallDeps,
): Promise<TransferResult> {
  const call = deps.calls.call(callUuid)
  if (call === undefined) return { kind: 'not_found' }
  if (call.stopped) return { kind: 'already_ending' }
  const { conversation } = call
  if (call.answeredAt === null || conversation === undefined) return { kind: 'not_answered' }
  const stayer = conversation.participant(moved) ?? conversation.partnerOf(otherSide(moved))
  const leaver = stayer?.conversation.partnerOf(stayer.side)
  if (!stayer || !leaver || stayer.leg.media === '') return { kind: 'not_transferable' }
  if (isTransferring(leaver, stayer)) return { kind: 'transfer_in_progress' }
  const tenantId = call.account?.tenantId ?? null
  const payer = payerOf(leaver, stayer, tenantId, deps)
  if (payer === undefined) return { kind: 'not_transferable' }
  const domain = payer.origin.kind === 'extension' ? payer.origin.domain : ''
  const target = { number: destination, user: userPart(destination), domain }
  const hooks = {
    onProgress: () => undefined,
    onTaken: () => leaver.leg.hangUp({}),
    onFailed: () => undefined,
  }
  return transferToNewCall({ leaver, stayer, target, payer, hooks, tenantId }, deps)
}

/**
 * A phone that leaves pays for it, as when it had done it itself; else whoever pays for his call now;
 * else whoever is ours: a node serves the number that was called, which may be a customer's.
 * Nobody of another tenant than the call's: its API keys would spend somebody else's money.
 */
function payerOf(
  leaver: Participant,
  stayer: Participant,
  tenantId: number | null,
  deps: InboundCallDeps,
): Identity | undefined {
  const found = [leaver, stayer].flatMap((participant) => {
    const identity = identityOf(participant, deps)
    const isForeign = tenantId !== null && isOfOther(identity, tenantId)
    return identity === undefined || isForeign ? [] : [{ participant, identity }]
  })
  const chosen =
    found.find(({ participant, identity: { origin } }) => {
      return participant === leaver && origin.kind === 'extension'
    }) ??
    found.find(({ participant }) => isPaying(participant)) ??
    found.find(({ identity: { origin } }) => origin.kind !== 'trusted') ??
    found[0]
  return chosen?.identity
}

function isOfOther(identity: Identity | undefined, tenantId: number): boolean {
  if (identity?.origin.kind === 'proxy') return !identity.origin.tenantIds.includes(tenantId)
  return identity?.origin.kind === 'extension' && identity.origin.tenantId !== tenantId
}

const isPaying = ({ conversation: { call }, side }: Participant): boolean =>
  side === 'caller' && !call.isFree && (call.account?.customerId ?? null) !== null
