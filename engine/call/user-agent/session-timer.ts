/**
 * Session timers (RFC 4028): each leg has its own, which the SIP server runs. So a call also ends
 * when a party vanishes without BYE.
 */
import { parseMinSE, parseOptionTags, parseSessionExpires } from '../../../schema/sip/index.ts'
import type { SentFields } from '../../sip-server/application.ts'
import type { Headers } from '../signalling.ts'

export interface SessionTimerTerms {
  /** How long a leg may go without a sign of life; 0: for ever. */
  readonly seconds: number
  /**
   * We refresh unless the peer insists: the server does not confirm refreshes of the peer, which
   * would take it for a call without a timer.
   */
  readonly isOurPart: boolean
}

/** RFC 4028 §5. Only tests ask for a session that is shorter. */
const LEAST_SECONDS = 90

/**
 * Asks for a session in an INVITE. `least`: the callee's Min-SE. A callee that challenges us might
 * challenge each refresh, for which the SIP server has no credentials: the callee is to refresh
 * itself.
 */
export function askForSession(
  headers: Headers,
  timers: SessionTimerTerms,
  { least = 0, challenges = false } = {},
): void {
  if (timers.seconds === 0) return
  headers['supported'] = withTimer(headers['supported'])
  const theirs = challenges ? ';refresher=uas' : ''
  const refresher = timers.isOurPart ? ';refresher=uac' : theirs
  headers['session-expires'] = `${Math.max(timers.seconds, least)}${refresher}`
  headers['min-se'] = String(Math.max(Math.min(LEAST_SECONDS, timers.seconds), least))
}

/** The headers of the second INVITE, with the same Call-ID (RFC 4028 §7.4). */
export function nextAttempt(
  headers: Headers,
  { from, callId, cseq }: Pick<SentFields, 'from' | 'callId' | 'cseq'>,
): Headers {
  const { From: _, ...others } = headers
  return {
    ...others,
    From: from,
    'Call-ID': callId,
    CSeq: `${cseq + 1} INVITE`,
  }
}

/** Writes the session headers of a 200 to an INVITE with the headers `request` (§9, Table 2). */
export function grantSession(request: Headers, headers: Headers, timers: SessionTimerTerms): void {
  if (timers.seconds === 0) return
  const { supported, require } = request
  const knowsTimer = hasTimer(supported) || hasTimer(require)
  const wanted = parseSessionExpires(request['session-expires'] ?? '')
  const least = knowsTimer ? (parseMinSE(request['min-se'] ?? '') ?? 0) : 0
  const seconds = Math.max(least, Math.min(timers.seconds, wanted?.seconds ?? timers.seconds))
  // A peer without this extension cannot refresh.
  const refresher = knowsTimer ? (wanted?.refresher ?? (timers.isOurPart ? 'uas' : 'uac')) : 'uas'
  headers['session-expires'] = `${seconds};refresher=${refresher}`
  headers['supported'] = withTimer(headers['supported'])
  if (refresher === 'uac') headers['require'] = 'timer'
}

/**
 * The Min-SE of a 422, if it is more than our interval. Undefined: a second INVITE would fail, too.
 */
export function leastOf(refusal: Headers, { seconds }: SessionTimerTerms): number | undefined {
  const least = parseMinSE(refusal['min-se'] ?? '')
  return least !== undefined && least > seconds ? least : undefined
}

const hasTimer = (options: string | undefined): boolean =>
  parseOptionTags([options ?? '']).includes('timer')

const withTimer = (options: string | undefined): string =>
  options === undefined || options === '' ? 'timer' : `${options}, timer`
