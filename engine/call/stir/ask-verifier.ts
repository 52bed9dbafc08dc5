/** The verification of a call has a note, a place in its record, and is the end of some. */
import type { CallDeps } from '../call-deps.ts'
import type { LiveCall } from '../call-machine/state.ts'
import { type CallRefusal, type End, refused } from '../cdr/end-reason.ts'
import { expectedDirection, unpaid } from '../inbound/admission.ts'
import type { IncomingInvite } from '../inbound/incoming-invite.ts'
import { tenantOf } from '../inbound/route.ts'
import type { SipRequest } from '../signalling.ts'
import type { VerifiedCaller } from './verified-caller.ts'
import type { VerificationStatus } from '../../../schema/contracts/stir.ts'

export type VerifiedInvite =
  | { readonly kind: 'goes_on'; readonly invite: IncomingInvite }
  /** It is refused, or has ended meanwhile. */
  | { readonly kind: 'ended'; readonly end: End }

/** A promise only where a certificate is fetched. */
export function verifyCaller(
  request: SipRequest,
  call: LiveCall,
  invite: IncomingInvite,
  deps: CallDeps,
): VerifiedInvite | Promise<VerifiedInvite> {
  const verified = deps.verifier.verify(request, call, invite)
  return verified instanceof Promise
    ? verified.then((each) => take(each, call, invite, deps))
    : take(verified, call, invite, deps)
}

function take(
  verified: VerifiedCaller,
  call: LiveCall,
  invite: IncomingInvite,
  deps: CallDeps,
): VerifiedInvite {
  const { callUuid, origin, calledNumber } = invite
  deps.dispatch({ type: 'verified', callUuid, verified })
  const { refusal } = verified
  // Nobody is left without help because of a signature.
  const isRefused =
    origin.kind === 'carrier' &&
    origin.verify === 'refuse' &&
    !deps.routing.isEmergencyNumber(calledNumber)
  // The caller may have cancelled meanwhile.
  const end = call.end ?? (isRefused && refusal ? refusalBy(refusal, verified.why) : undefined)
  if (end === undefined) return { kind: 'goes_on', invite: { ...invite, verified } }
  deps.dispatch({
    type: 'admit',
    callUuid,
    origin,
    direction: expectedDirection(origin),
    isEmergency: false,
    account: unpaid(tenantOf(origin, deps)),
    grantedSeconds: null,
    isFree: true,
    notes: [{ at: deps.now(), what: 'recognized', origin }],
  })
  return { kind: 'ended', end }
}

/** RFC 8224 §6.2.2, with the Reason of RFC 9410. */
function refusalBy(
  { status, reason }: NonNullable<VerifiedCaller['refusal']>,
  why: string,
): CallRefusal {
  const text = reason.replace(/[^\x20-\x7e]|["\\]/g, ' ').slice(0, MAX_REASON)
  const headers = { Reason: `STIR;cause=${status};text="${text}"` }
  return refused(status, text, codes[status], headers, why)
}

const MAX_REASON = 100

const codes = {
  403: 'identity_stale',
  428: 'identity_missing',
  436: 'identity_info',
  437: 'identity_credential',
  438: 'identity_invalid',
} as const satisfies Record<VerificationStatus, string>
