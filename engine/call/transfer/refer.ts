/** REFER in a call (RFC 3515): who asks, what for, and how it goes on. */
import type { Call } from '../call.ts'
import type { InboundCallDeps } from '../inbound/inbound-call.ts'
import { isTransferring, type Participant } from '../legs/conversation.ts'
import { wantsPrivacy } from '../dialing/outgoing-invite.ts'
import { partyOf } from '../sip/caller-id.ts'
import type { Answer, SipRequest } from '../srf/drachtio.ts'
import { respond } from '../sip/answers.ts'
import { joinCalls } from './attended.ts'
import { Handover, type TransferHooks } from './handover.ts'
import { callerIdentity, identityOf, isSame, type Identity } from './identity.ts'
import { transferToNewCall } from './new-call.ts'
import { readRefer, type ReferRequest } from './refer-request.ts'
import type { Replaces } from './replaces.ts'
import { Subscription } from './subscription.ts'

/** Who has transferred a call hangs up by himself, as soon as he hears that it worked. */
const PARTING_MS = 3_000

/** Each leaves a record, also one that is refused before anybody rings; nobody tries so often. */
const MAX_FAILED = 20

/** `leaver` wants somebody else to talk to whom he talks to now. */
export function takeRefer(
  leaver: Participant,
  request: SipRequest,
  answer: Answer,
  deps: InboundCallDeps,
): void {
  const refer = readRefer(request.headers)
  if (refer.kind === 'refused') return respond(answer, refer.status, refer.reason)
  const payer = identityOf(leaver, deps)
  const { failedTransfers } = leaver.conversation.call
  if (payer === undefined || failedTransfers >= MAX_FAILED) return respond(answer, 403)
  const stayer = leaver.conversation.partnerOf(leaver.side)
  if (stayer === undefined || isTransferring(leaver, stayer)) return respond(answer, 491)
  if (stayer.leg.media === '') return respond(answer, 488)
  const headers = refer.isSilent ? { 'refer-sub': 'false' } : {}
  respond(answer, 202, undefined, { headers })
  const subscription = new Subscription(leaver.leg, refer.id, refer.isSilent)
  subscription.tell(100, 'Trying')
  const hooks = hooksOf(leaver, subscription, deps)
  const { target, replaces } = refer
  if (replaces) return attended({ leaver, stayer, payer, replaces, hooks }, refer, deps)
  const from = partyOf(request.headers['from'] ?? '')
  const referrer = wantsPrivacy({ from, headers: request.headers }) ? undefined : payer
  // A bug ends one transfer, not the process.
  const plan = { leaver, stayer, target, payer, referrer, hooks }
  transferToNewCall(plan, deps).catch((error: unknown) => {
    deps.log('error', 'a transfer failed', { error })
    hooks.onFailed(500, 'Server Internal Error')
  })
}

function hooksOf(
  { leg, conversation }: Participant,
  subscription: Subscription,
  { deadlines, now }: InboundCallDeps,
): TransferHooks {
  return {
    onProgress: (status, reason) => subscription.tell(status, reason),
    onTaken: () => {
      subscription.end(200, 'OK')
      deadlines.at(now() + PARTING_MS, () => leg.hangUp({}))
    },
    onFailed: (status, reason) => {
      conversation.call.failedTransfers += 1
      subscription.end(status, reason)
    },
  }
}

interface Attended {
  readonly leaver: Participant
  readonly stayer: Participant
  readonly payer: Identity
  readonly replaces: Replaces
  readonly hooks: TransferHooks
}

/** RFC 3891 §3, asked of us in the place of whom the leaver has called meanwhile. */
function attended(
  plan: Attended,
  { target }: ReferRequest & { readonly kind: 'refer' },
  deps: InboundCallDeps,
): void {
  const { leaver, stayer, payer, replaces, hooks } = plan
  const { callId, toTag, fromTag, isEarlyOnly } = replaces
  const ringing = deps.calls.unanswered(callId, fromTag)
  if (ringing) return semiAttended(plan, ringing, deps)
  const consulting = deps.calls.participantIn(callId, toTag, fromTag)
  const owner = consulting && identityOf(consulting, deps)
  const called = consulting?.conversation.partnerOf(consulting.side)
  const isOwn = owner !== undefined && isSame(owner, payer)
  const isFirst = consulting?.leg === leaver.leg || called?.leg === leaver.leg
  if (!consulting || !isOwn || !called || isFirst)
    return hooks.onFailed(481, 'Call/Transaction Does Not Exist')
  if (isEarlyOnly) return hooks.onFailed(486, 'Busy Here')
  if (isTransferring(consulting, called)) return hooks.onFailed(491, 'Request Pending')
  return joinCalls({ leaver, stayer, consulting, called, target, hooks }, deps)
}

/** Whom the leaver has called has not answered yet: whoever stays is connected as soon as he does. */
function semiAttended(
  { leaver, stayer, payer, hooks }: Attended,
  ringing: Call,
  deps: InboundCallDeps,
): void {
  const owner = callerIdentity(ringing)
  const { invite, start } = ringing
  if (!invite?.canGiveWay || owner === undefined || !isSame(owner, payer))
    return hooks.onFailed(481, 'Call/Transaction Does Not Exist')
  // Whom it reaches would make the offer, which whoever stays would have to answer in our ACK.
  if (invite.body === undefined) return hooks.onFailed(488, 'Not Acceptable Here')
  const plan = { leaver, stayer, destination: start.calledNumber, hooks }
  invite.giveWayTo(new Handover(plan, ringing, invite.body, deps))
  if (ringing.firstProgressAt !== null) hooks.onProgress(180, 'Ringing')
}
