/**
 * INVITE with Replaces (RFC 3891): the caller replaces a party of a call. No destination is called
 * and nothing is charged: the replaced party's call continues, on its own account.
 */
import { parseReplaces, hostPort, tagOf } from '../../../schema/sip/index.ts'
import type { CallDeps } from '../call-deps.ts'
import type { LiveCall, LiveLeg } from '../call-machine/state.ts'
import { refused, type CallRefusal } from '../cdr/end-reason.ts'
import { admitFree, onFault, refuse, rejectionFor } from '../inbound/admission.ts'
import {
  type IncomingInvite,
  isOfSupervisor,
  hopsLeftOf,
  readInvite,
  startOf,
} from '../inbound/incoming-invite.ts'
import type { Headers, Answer } from '../signalling.ts'
import { identityOf, mayReplace, callerIdentity, partyKeyOf, type Identity } from './identity.ts'
import { requires100rel, respond } from '../sip-headers.ts'
import type { ReceivedRequest } from '../user-agent/received-request.ts'
import type { ReplacementRequest } from './other-instances.ts'

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

interface PartyPair {
  readonly replaced: LiveLeg
  /** The leg that the replaced one talks to. */
  readonly partner: LiveLeg
}

/** §3, in its order. */
function partyToReplace(
  headers: Headers,
  origin: IncomingInvite['origin'],
  deps: CallDeps,
): PartyPair | CallRefusal {
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

// INVITE with Replaces (RFC 3891) of another instance, by which it finishes an attended transfer:
// its caller takes the place of the transferor in a call of this instance. As on one instance, both
// calls must have the same party, and neither charges anything for it. A refused INVITE has no
// record.

export function replaceForOtherInstance(
  request: ReceivedRequest,
  answer: Answer,
  replacement: ReplacementRequest,
  deps: CallDeps,
): void {
  const found = partyOfReplacement(replacement, deps)
  if ('status' in found) return respond(answer, found.status, found.reason)
  // The caller would have to answer an offer that the called party has not made yet.
  if (found.answered === undefined && !request.body) return respond(answer, 488)
  const call = begin(request, found, replacement, deps)
  if (call === undefined) return undefined
  try {
    return replace(request, call, found, deps)
  } catch (error) {
    onFault(call, deps)(error)
  }
}

interface ReplacedParty {
  /** Absent: the call still rings, and its caller is replaced when it is answered. */
  readonly answered?: PartyPair
  /** The call of the replaced party. */
  readonly call: LiveCall
  readonly owner: Identity
}

interface Rejection {
  readonly status: number
  readonly reason?: string
}

/**
 * RFC 3891 §3, in its order, and D49: who has called may have its place taken while the call rings.
 */
function partyOfReplacement(
  replacement: ReplacementRequest,
  deps: CallDeps,
): ReplacedParty | Rejection {
  const { replaces, party } = replacement
  const { calls } = deps
  const { callId, toTag, fromTag, isEarlyOnly } = replaces
  const ringing = calls.unanswered(callId, fromTag)
  if (ringing) return callerToReplace(ringing, replacement)
  const replaced = calls.legIn(callId, toTag, fromTag)
  const partner = replaced && calls.partnerOf(replaced)
  const call = replaced && calls.call(replaced.callUuid)
  if (!replaced || !partner || !call) return { status: calls.hasEnded(callId) ? 603 : 481 }
  const owner = identityOf(call, replaced.side, deps)
  if (owner === undefined || partyKeyOf(owner) !== party) return { status: 481 }
  if (isEarlyOnly) return { status: 486 }
  if (calls.isTransferring(replaced, partner)) return { status: 491 }
  return { answered: { replaced, partner }, call, owner }
}

function callerToReplace(call: LiveCall, { party }: ReplacementRequest): ReplacedParty | Rejection {
  const owner = callerIdentity(call)
  const { calling, offer } = call
  const canGiveWay = calling.kind === 'invite' && calling.replacedBy === undefined
  if (!canGiveWay || owner === undefined || partyKeyOf(owner) !== party) return { status: 481 }
  // The called party would make the offer, which the caller that is replaced would have to answer.
  return offer === undefined ? { status: 488 } : { call, owner }
}

/**
 * Begins the call of the other instance: its caller is the other instance, its callee the party
 * that stays.
 */
function begin(
  request: ReceivedRequest,
  { answered, call: its, owner }: ReplacedParty,
  replacement: ReplacementRequest,
  deps: CallDeps,
): LiveCall | undefined {
  const { headers, sourceAddress, sourcePort } = request
  // The asserted identity is that of the transferee, not of the owner of the calls.
  const read = readInvite(request, deps.newUuid(), { kind: 'trusted' }, deps.routing)
  const { start } = its
  const isCaller = answered === undefined || answered.replaced.side === 'caller'
  const calledNumber = isCaller ? start.calledNumber : start.callerNumber
  const before = [replacement, its, deps.calls.call(answered?.partner.callUuid ?? '') ?? its]
  const transfersBefore = Math.max(...before.map((each) => each.transfersBefore))
  const invite = { ...read, origin: owner.origin, calledNumber }
  const started = startOf(invite, hostPort(sourceAddress, sourcePort), deps.now())
  const leg = deps.calls.beginInvited(
    {
      start: { ...started, ...(replacement.isRecorded && { isRecordedElsewhere: true }) },
      transfersBefore,
    },
    {
      callerTag: tagOf(headers['from']),
      offer: request.body || undefined,
      isReliable: requires100rel(headers['require']),
      isPhone: false,
    },
  )
  deps.receive(leg.id, request, true)
  return deps.calls.call(leg.callUuid)
}

function replace(
  request: ReceivedRequest,
  call: LiveCall,
  { answered, call: its, owner }: ReplacedParty,
  deps: CallDeps,
): void {
  const { headers } = request
  const received = { headers, hasUsableContact: (headers['contact'] ?? '') !== '' }
  const { calledNumber } = call.start
  const { origin } = owner
  const checked = { origin, calledNumber, hopsLeft: hopsLeftOf(headers), isEmergency: false }
  const rejection = rejectionFor(received, checked, deps)
  if (rejection) return refuse(call, rejection, deps)
  admitFree(call, origin, its.account?.tenantId ?? null, deps)
  const { callUuid } = call.start
  if (answered === undefined)
    return deps.dispatch({ type: 'replaceEarly', callUuid, ringing: its.start.callUuid })
  const { replaced, partner } = answered
  return deps.dispatch({ type: 'replace', callUuid, replaced: replaced.id, partner: partner.id })
}
