/** Why a readable request is rejected before an application sees it: RFC 3261 §8.2.2.3, §8.2.3 and §14.2. */
import type { Conflict } from '../../dialog/pending-requests.ts'
import { trimBlanks } from '../../message/headers.ts'
import type { SipMessage } from '../../message/message.ts'
import type { Refusal } from '../../options.ts'
import { parseOptionTags } from '../../message/fields.ts'
import { knowsTimer, sessionExpiresOf } from '../../dialog/session-terms.ts'

export type Rejection = Refusal

export const noSuchCall: Rejection = { status: 481, reason: 'Call/Transaction Does Not Exist' }
export const tooManyHops: Rejection = { status: 483, reason: 'Too Many Hops' }
/** A sender may try again after so many seconds. */
export const unavailable = (seconds: number): Rejection => ({
  status: 503,
  reason: 'Service Unavailable',
  lines: `Retry-After: ${seconds}\r\n`,
})

/**
 * Extensions that a peer may insist on: applications do what they ask, or it needs nothing beyond
 * passing headers on; session timers and reliable provisional responses are this server's work.
 */
const understood: ReadonlySet<string> = new Set(
  (
    '100rel timer replaces norefersub path outbound gruu from-change histinfo privacy tdialog join ' +
    'eventlist answermode resource-priority geolocation siprec record-aware'
  ).split(' '),
)

/** The answer to a request outside or inside a dialog; never asked for ACK and CANCEL (§8.2.2.3). */
export function rejectionFor(
  request: SipMessage,
  minSessionSeconds: number,
): Rejection | undefined {
  return (
    unknownExtension(request) ??
    unknownEncoding(request) ??
    unknownBody(request) ??
    shortSession(request, minSessionSeconds)
  )
}

/** RFC 4028 §9; a sender without the extension could do nothing with the answer. */
function shortSession(request: SipMessage, minSeconds: number): Rejection | undefined {
  if (request.method !== 'INVITE' && request.method !== 'UPDATE') return undefined
  if (!request.has('Session-Expires')) return undefined
  const seconds = sessionExpiresOf(request)?.seconds
  if (seconds === undefined || seconds >= minSeconds || !knowsTimer(request)) return undefined
  const lines = `Min-SE: ${minSeconds}\r\n`
  return { status: 422, reason: 'Session Interval Too Small', lines }
}

function unknownExtension(request: SipMessage): Rejection | undefined {
  // A new INVITE is a call: its application judges what it asks, and keeps the record of the refusal.
  const isCall = request.method === 'INVITE' && request.toTag === ''
  if (isCall || !request.has('Require')) return undefined
  const unknown = parseOptionTags(request.all('Require')).filter((tag) => !understood.has(tag))
  if (unknown.length === 0) return undefined
  return { status: 420, reason: 'Bad Extension', lines: `Unsupported: ${unknown.join(', ')}\r\n` }
}

function unknownEncoding(request: SipMessage): Rejection | undefined {
  const encoding = request.get('Content-Encoding')
  if (encoding === undefined || encoding.toLowerCase() === 'identity') return undefined
  return unsupported('Accept-Encoding: identity\r\n')
}

/** A session is described in SDP, alone or beside other parts, unless the body may be ignored (§20.11). */
function unknownBody(request: SipMessage): Rejection | undefined {
  if (request.method !== 'INVITE' || !request.hasBody) return undefined
  const type = trimBlanks((request.get('Content-Type') ?? '').split(';', 1)[0] ?? '').toLowerCase()
  if (type === 'application/sdp' || type.startsWith('multipart/')) return undefined
  const disposition = request.get('Content-Disposition') ?? ''
  if (/;\s*handling\s*=\s*optional/i.test(disposition)) return undefined
  return unsupported('Accept: application/sdp, multipart/mixed\r\n')
}

const unsupported = (lines: string): Rejection => ({
  status: 415,
  reason: 'Unsupported Media Type',
  lines,
})

/** A request that must wait for another in its dialog. */
export const rejectionOf = (conflict: Conflict, now: number): Rejection =>
  conflict === 'glare'
    ? { status: 491, reason: 'Request Pending' }
    : {
        status: 500,
        reason: 'Server Internal Error',
        // §14.2: a time between 0 and 10 seconds, chosen at random.
        lines: `Retry-After: ${Math.floor(now % 10)}\r\n`,
      }
