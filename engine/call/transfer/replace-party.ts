/**
 * INVITE with Replaces (RFC 3891): the caller replaces a party of a call. No destination is called and no wallet is
 * asked: the replaced party's call continues, on its own account.
 */
import { parseReplaces } from '../../sip-server/message/index.ts'
import type { CallDeps } from '../call-deps.ts'
import type { LiveCall, LiveLeg } from '../call-machine/state.ts'
import { refused, type Refusal } from '../cdr/end-reason.ts'
import { admitFree } from '../inbound/admission.ts'
import { type IncomingInvite, isOfSupervisor } from '../inbound/incoming-invite.ts'
import type { Headers } from '../signalling.ts'
import { identityOf, mayReplace } from './identity.ts'

export function replaceParty(
  headers: Headers,
  call: LiveCall,
  { origin }: IncomingInvite,
  deps: CallDeps,
): void {
  const { callUuid } = call.start
  const found = partyToReplace(headers, origin, deps)
  if ('kind' in found) return deps.dispatch({ type: 'refuse', callUuid, end: found })
  const { replaced, partner } = found
  const { tenantId = null } = deps.calls.call(replaced.callUuid)?.account ?? {}
  admitFree(call, origin, tenantId, deps)
  return deps.dispatch({ type: 'replace', callUuid, replaced: replaced.id, partner: partner.id })
}

interface Found {
  readonly replaced: LiveLeg
  /** The leg that the replaced one talks to. */
  readonly partner: LiveLeg
}

/** §3, in its order. */
function partyToReplace(
  headers: Headers,
  origin: IncomingInvite['origin'],
  deps: CallDeps,
): Found | Refusal {
  const { calls } = deps
  const replaces = parseReplaces(headers['replaces'] ?? '')
  if (replaces === undefined || headers['join'] !== undefined)
    return refused(400, 'Bad Replaces', 'bad_request')
  const { callId, toTag, fromTag, isEarlyOnly } = replaces
  const replaced = calls.legIn(callId, toTag, fromTag)
  const partner = replaced && calls.partnerOf(replaced)
  if (!replaced || !partner)
    return calls.hasEnded(callId)
      ? refused(603, 'Decline', 'replaces_ended_call')
      : refused(481, 'Call/Transaction Does Not Exist', 'replaces_unknown_call')
  const call = calls.call(replaced.callUuid)
  const tenants = [call?.account?.tenantId, tenantOf(replaced, deps)]
  const isListening = call !== undefined && isOfSupervisor(call.start)
  if (isListening || !tenants.some((tenantId) => mayReplace(origin, tenantId ?? null, deps)))
    return refused(403, 'Forbidden', 'replaces_not_allowed')
  if (isEarlyOnly) return refused(486, 'Busy Here', 'replaces_answered_call')
  if (calls.isTransferring(replaced, partner)) return refused(491, 'Request Pending', 'transfer')
  return { replaced, partner }
}

function tenantOf({ callUuid, side }: LiveLeg, deps: CallDeps): number | null {
  const call = deps.calls.call(callUuid)
  const origin = call && identityOf(call, side, deps)?.origin
  return origin?.kind === 'extension' ? origin.tenantId : null
}
