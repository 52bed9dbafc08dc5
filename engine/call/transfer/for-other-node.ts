/**
 * INVITE with Replaces (RFC 3891) of another node, by which it finishes an attended transfer: its caller takes the place
 * of the transferor in a call of this node. As on one node, both calls must have the same party, and neither
 * charges anything for it. What is refused here has no record.
 */
import { hostPort, tagOf } from '../../sip-server/message/index.ts'
import type { CallDeps } from '../call-deps.ts'
import type { LiveCall, LiveLeg } from '../call-machine/state.ts'
import { admitFree, onFault, refuse } from '../inbound/admission.ts'
import { hopsLeftOf, readInvite, startOf } from '../inbound/incoming-invite.ts'
import { rejectionFor } from '../inbound/validation.ts'
import { requires100rel, respond } from '../sip-headers.ts'
import type { Answer } from '../signalling.ts'
import type { ReceivedRequest } from '../user-agent/received-request.ts'
import { callerIdentity, identityOf, partyOf, type Identity } from './identity.ts'
import type { AskedReplacement } from './other-nodes.ts'

interface Deps extends CallDeps {
  /** Watches the INVITE of a call that has begun. */
  readonly receive: (legId: string, request: ReceivedRequest, isOtherNode: true) => void
}

export function replaceForOtherNode(
  request: ReceivedRequest,
  answer: Answer,
  asked: AskedReplacement,
  deps: Deps,
): void {
  const found = partyToReplace(asked, deps)
  if ('status' in found) return respond(answer, found.status, found.reason)
  // It would have to answer an offer that the called party has not made yet.
  if (found.answered === undefined && !request.body) return respond(answer, 488)
  const call = begin(request, found, asked, deps)
  if (call === undefined) return undefined
  try {
    return replace(request, call, found, deps)
  } catch (error) {
    onFault(call, deps)(error)
  }
}

interface Found {
  /** Absent: the call still rings, and its caller is replaced when it is answered. */
  readonly answered?: {
    readonly replaced: LiveLeg
    /** The leg that the replaced one talks to. */
    readonly partner: LiveLeg
  }
  /** The call of the replaced party. */
  readonly call: LiveCall
  readonly owner: Identity
}

interface Refused {
  readonly status: number
  readonly reason?: string
}

/** RFC 3891 §3, in its order, and D83: who has called may have its place taken while the call rings. */
function partyToReplace(asked: AskedReplacement, deps: Deps): Found | Refused {
  const { replaces, party } = asked
  const { calls } = deps
  const { callId, toTag, fromTag, isEarlyOnly } = replaces
  const ringing = calls.unanswered(callId, fromTag)
  if (ringing) return callerToReplace(ringing, asked)
  const replaced = calls.legIn(callId, toTag, fromTag)
  const partner = replaced && calls.partnerOf(replaced)
  const call = replaced && calls.call(replaced.callUuid)
  if (!replaced || !partner || !call) return { status: calls.hasEnded(callId) ? 603 : 481 }
  const owner = identityOf(call, replaced.side, deps)
  if (owner === undefined || partyOf(owner) !== party) return { status: 481 }
  if (isEarlyOnly) return { status: 486 }
  if (calls.isTransferring(replaced, partner)) return { status: 491 }
  return { answered: { replaced, partner }, call, owner }
}

function callerToReplace(call: LiveCall, { party }: AskedReplacement): Found | Refused {
  const owner = callerIdentity(call)
  const { calling, offer } = call
  const canGiveWay = calling.kind === 'invite' && calling.replacedBy === undefined
  if (!canGiveWay || owner === undefined || partyOf(owner) !== party) return { status: 481 }
  // The called party would make the offer, which the caller that is replaced would have to answer.
  return offer === undefined ? { status: 488 } : { call, owner }
}

/** The caller's side is that of the other node; what it calls is the party that stays. */
function begin(
  request: ReceivedRequest,
  { answered, call: its, owner }: Found,
  asked: AskedReplacement,
  deps: Deps,
): LiveCall | undefined {
  const { headers, sourceAddress, sourcePort } = request
  // What it asserts is the transferee's, not the owner's.
  const read = readInvite(request, deps.newUuid(), { kind: 'trusted' }, deps.routing)
  const { start } = its
  const isCaller = answered === undefined || answered.replaced.side === 'caller'
  const calledNumber = isCaller ? start.calledNumber : start.callerNumber
  const before = [asked, its, deps.calls.call(answered?.partner.callUuid ?? '') ?? its]
  const transfersBefore = Math.max(...before.map((each) => each.transfersBefore))
  const invite = { ...read, origin: owner.origin, calledNumber }
  const begun = startOf(invite, hostPort(sourceAddress, sourcePort), deps.now())
  const leg = deps.calls.beginInvited(
    {
      start: { ...begun, ...(asked.isRecorded && { isRecordedElsewhere: true }) },
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
  { answered, call: its, owner }: Found,
  deps: Deps,
): void {
  const { headers } = request
  const received = { headers, hasUsableContact: (headers['contact'] ?? '') !== '' }
  const { calledNumber } = call.start
  const asked = { origin: owner.origin, calledNumber, hopsLeft: hopsLeftOf(headers) }
  const rejection = rejectionFor(received, { ...asked, isEmergency: false }, deps)
  if (rejection) return refuse(call, rejection, deps)
  admitFree(call, owner.origin, its.account?.tenantId ?? null, deps)
  const { callUuid } = call.start
  if (answered === undefined)
    return deps.dispatch({ type: 'replaceEarly', callUuid, ringing: its.start.callUuid })
  const { replaced, partner } = answered
  return deps.dispatch({ type: 'replace', callUuid, replaced: replaced.id, partner: partner.id })
}
