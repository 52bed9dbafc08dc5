/** Why an INVITE is refused before the OCS or routing is asked. */
import type { IncomingInvite } from './incoming-invite.ts'
import type { ActiveCalls } from '../active-calls.ts'
import type { ClosedCode } from '../../../schema/contracts/calls.ts'
import { refused, type End } from '../cdr/end-reason.ts'
import { isOurSide, retryAfter } from './route.ts'
import { answerToIrregular, type Irregular, ownMark, unsupportedOptions } from '../sip-headers.ts'
import type { Headers } from '../signalling.ts'

export interface ValidationDeps {
  readonly calls: Openness & Pick<ActiveCalls, 'isCalling'>
  /** What `Retry-After` says when a limit is reached. */
  readonly retryAfterSeconds: number
}

/** Above it the process would work for calls that it cannot serve in time; about 15 kB each. */
const MAX_CALLS = 20_000

type Openness = Pick<ActiveCalls, 'isDraining' | 'size' | 'unserved'>

/** Why no call begins now, as its record's `denial_code`; undefined: calls are taken. */
export function closedBy(calls: Openness): ClosedCode | undefined {
  if (calls.isDraining) return 'draining'
  if (calls.size > MAX_CALLS) return 'overload'
  return calls.unserved
}

/** The INVITE as it was received. */
export interface ReceivedRequest {
  readonly headers: Headers
  /** Whether a dialog can be formed with this caller. */
  readonly hasUsableContact: boolean
  /** What is known of a source that is unknown. */
  readonly stranger?: string | undefined
}

type Validated = Pick<IncomingInvite, 'origin' | 'calledNumber' | 'irregular' | 'hopsLeft'> & {
  readonly isEmergency: boolean
  /** It is known already where the call goes. */
  readonly isRouted?: boolean
}

/** Returns why the INVITE is refused; undefined: it is valid. */
export function rejectionFor(
  { headers, hasUsableContact, stranger }: ReceivedRequest,
  { origin, calledNumber, irregular, hopsLeft, isEmergency, isRouted = false }: Validated,
  deps: ValidationDeps,
): End | undefined {
  if (origin.kind === 'unknown')
    return refused(403, 'Forbidden', 'unknown_source', undefined, stranger)
  const closed = isEmergency ? undefined : closedBy(deps.calls)
  if (closed)
    return refused(
      503,
      'Service Unavailable',
      closed,
      { ...retryAfter(deps), ...why(closed) },
      closed === 'overload' ? `over ${MAX_CALLS} calls at once` : undefined,
    )
  if (!hasUsableContact) return refused(400, 'Missing Or Bad Contact', 'bad_request')
  // RFC 3261 §16.3: a back-to-back user agent that does not count hops loops like a proxy.
  if (hopsLeft < 0) return refused(483, 'Too Many Hops', 'too_many_hops')
  const mark = ownMark(headers)
  if (mark !== undefined && deps.calls.isCalling(mark, calledNumber))
    return refused(482, 'Loop Detected', 'loop')
  const unsupported = unsupportedOptions(headers['require'])
  if (unsupported !== '')
    return refused(420, 'Bad Extension', 'bad_extension', { Unsupported: unsupported })
  // An INVITE that takes the place of a party (RFC 3891) calls no number.
  if (headers['replaces'] !== undefined) return undefined
  // Trunks may call a name. A phone or node calls the names of its tenant's agents and extensions only.
  const isCallable = irregular === 'name' && (isRouted || !isOurSide(origin))
  return isCallable ? undefined : wrongNumber(calledNumber, irregular)
}

/** RFC 6432: 41 is a temporary failure. Other reasons pass by themselves; this one an operator has to mend. */
const why = (closed: ClosedCode): Headers =>
  closed === 'node_fenced' ? { Reason: 'Q.850;cause=41;text="Node Fenced"' } : {}

/** Why a call is refused whose carrier has reached its limits. */
export const carrierFull = (
  deps: Pick<ValidationDeps, 'retryAfterSeconds'>,
  limit: string | undefined,
): End => refused(503, 'Service Unavailable', 'carrier_limit', retryAfter(deps), limit)

/** What cannot be priced, blocked and routed by its digits is called neither here nor elsewhere. */
function wrongNumber(number: string, irregular: Irregular | undefined): End | undefined {
  if (number === '') return refused(484, 'Address Incomplete', 'no_number')
  if (irregular === undefined) return undefined
  const { status, reason } = answerToIrregular[irregular]
  return refused(status, reason, irregular === 'name' ? 'unknown_name' : 'malformed_number')
}
