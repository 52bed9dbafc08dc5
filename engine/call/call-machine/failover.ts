/**
 * Which ends of an attempt lead to the next destination, and what the caller gets in the end. Pure.
 */
import { noCandidate, type End } from '../cdr/end-reason.ts'
import { withoutPhone } from '../dialing/outgoing-invite.ts'
import { listedStatus } from '../sip-headers.ts'
import type { Headers } from '../signalling.ts'
import { parseReason, reasonPhrase, splitList } from '../../../schema/sip/index.ts'
import type { HuntingRules } from '../../../schema/contracts/hunting.ts'
import { isMatch, type MatchedAnswer, matchesAnswer } from '../../../schema/rules/hunting.ts'
import type { AttemptResult } from './state.ts'

type Rejected = AttemptResult & { readonly kind: 'rejected' }

/**
 * The node cannot serve the call, but another may (SPECIFICATION.md §10.4). A 4xx or 6xx is the
 * called side's decision. A carrier may have rules of its own (`isMovingOn`).
 */
export function movesOn(status: number): boolean {
  return status === 408 || status === 500 || (status >= 502 && status <= 504)
}

/** Whether an answer leads to the next gateway by the rules of its carrier, if it has any. */
function isMovingOn(result: Rejected, { rules, isEmergency }: Hunting): boolean {
  const { status } = result
  if (rules === undefined) return movesOn(status)
  const { nextOn, stopOn, redirects } = rules
  const answer = answerOf(result)
  // Nothing stops an emergency that would let another call go on.
  if (!isEmergency && matchesAnswer(stopOn, answer)) return false
  // Redirections are followed, but this one leads nowhere.
  if (status < 400 && redirects === 'follow') return true
  const isUsual = nextOn === null || isEmergency
  return (isUsual && movesOn(status)) || (nextOn !== null && matchesAnswer(nextOn, answer))
}

const answerOf = ({ status, headers }: Rejected): MatchedAnswer => ({
  status,
  cause: () => q850Cause(headers),
})

/** RFC 3326: of several reasons, the one of ISUP. */
function q850Cause(headers: Headers): number | undefined {
  for (const value of splitList(headers['reason'] ?? '')) {
    const reason = parseReason(value.trim())
    if (reason?.protocol === 'q.850' && reason.cause !== undefined) return reason.cause
  }
  return undefined
}

/** Returns the health of a node, as a live call has shown it (SPECIFICATION.md §10.4). */
export function healthShown(result: AttemptResult): 'answered' | 'failed' | undefined {
  switch (result.kind) {
    case 'silent':
      return 'failed'
    case 'not-sent':
      return result.isConnectionLost === true ? undefined : 'failed'
    case 'rejected':
      return result.status === 503 ? 'failed' : 'answered'
    case 'answered':
      return 'answered'
    case 'stopped':
    case 'withheld':
    case 'continued':
    default:
      return undefined
  }
}

/**
 * Whether an attempt counts for the answer seizure ratio of its carrier (ITU-T E.425): any final
 * response, and silence. Busy and unknown numbers count as well.
 */
export function isSeizure(result: AttemptResult): boolean {
  if (result.kind === 'not-sent') return result.isConnectionLost !== true
  return result.kind === 'rejected' || result.kind === 'silent'
}

/** Returns the end that the caller would get after this result, and whether it is final. */
export function afterResult(
  result: AttemptResult | undefined,
  last: End,
  hunting: Hunting = usual,
): { readonly last: End; readonly isLast: boolean } {
  if (result?.kind === 'withheld' && last.kind === 'refused' && last.code === noCandidate.code)
    return { last: result.end, isLast: false }
  if (result?.kind !== 'rejected') return { last, isLast: false }
  return {
    last: shownBy(result, hunting.rules),
    isLast: result.isFinal || !isMovingOn(result, hunting),
  }
}

/** The rules of the carrier that has answered; undefined: it has none. */
export interface Hunting {
  readonly rules: HuntingRules | undefined
  readonly isEmergency: boolean
}

const usual: Hunting = { rules: undefined, isEmergency: false }

/** The answer of a carrier, as its callers get it: the record keeps both. */
function shownBy(result: Rejected, rules: HuntingRules | undefined): End {
  if (rules === undefined || rules.answers.length === 0) return endOf(result)
  const answer = answerOf(result)
  const mapped = rules.answers.find(({ match }) => isMatch(match, answer))
  if (mapped === undefined) return endOf(result)
  const { status, reason } = mapped
  // A Reason would contradict what is shown.
  const { reason: _, ...headers } = result.headers
  return {
    kind: 'rejected',
    status: listedStatus(status),
    reason: reason ?? reasonPhrase(status),
    headers,
    answered: result.status,
  }
}

/**
 * A challenge is for us, not for the caller, and a redirection that is not followed would show what
 * is behind us: neither passes as it is.
 */
function endOf({ status, reason, headers, isVerbatim }: Rejected): End {
  if (isVerbatim === true)
    return { kind: 'rejected', status: listedStatus(status), reason, headers }
  if (status === 401 || status === 407) return rejected(403, 'Forbidden')
  if (status < 400) return rejected(480, 'Temporarily Unavailable')
  return { kind: 'rejected', status: listedStatus(status), reason, headers }
}

const rejected = (status: number, reason: string): End => ({
  kind: 'rejected',
  status,
  reason,
  headers: {},
})

const unavailable: AttemptResult & Rejected = {
  kind: 'rejected',
  status: 480,
  reason: 'Temporarily Unavailable',
  headers: {},
  isFinal: true,
}

/**
 * A phone was called through another instance that is gone. Anything that another phone says counts
 * more.
 */
export const holderLost: AttemptResult & Rejected = {
  kind: 'rejected',
  status: 503,
  reason: 'Service Unavailable',
  headers: {},
  isFinal: true,
}

/** RFC 5626 §5.3: the instance or proxy that had the connection of the phone has lost it. */
const FLOW_FAILED = 430

/** The result of an extension, when all of its phones are done. */
export const resultOfPhones = (
  extension: { readonly leadsToGateway?: true },
  results: readonly AttemptResult[],
): AttemptResult =>
  results.length > 0 ? bestOf(results) : { kind: 'withheld', end: withoutPhone(extension) }

/** RFC 3261 §16.7 step 6: of phones that rang in parallel, the most informative response. */
export function bestOf(results: readonly AttemptResult[]): AttemptResult {
  const decisive = results.find(({ kind }) => kind === 'answered' || kind === 'stopped')
  if (decisive) return decisive
  let best: Rejected = unavailable
  for (const result of results)
    if (
      result.kind === 'rejected' &&
      result.status !== FLOW_FAILED &&
      rankOf(result) > rankOf(best)
    )
      best = { ...result, isFinal: true }
  if (best !== unavailable) return best
  if (results.includes(holderLost)) return holderLost
  const [first] = results
  if (first && results.every(isWithoutRelay)) return first
  // No phone could be called as requested: the caller gets the reason, and so does the record.
  const withheld = results.find((result) => result.kind === 'withheld' && !isWithoutRelay(result))
  if (withheld?.kind !== 'withheld') return unavailable
  const { status, reason } = isShownToCaller.has(withheld.end.status) ? withheld.end : unavailable
  return { kind: 'withheld', end: { ...withheld.end, status, reason } }
}

/**
 * A phone that needs TLS, and one at another instance that a message is too large for. No phone
 * learns where gateways are.
 */
const isShownToCaller: ReadonlySet<number> = new Set([480, 513])

const isWithoutRelay = (result: AttemptResult): boolean =>
  result.kind === 'withheld' && mediaCodes.has(result.end.code)

const mediaCodes: ReadonlySet<string> = new Set([
  'media_relay_unavailable',
  'unreadable_description',
  'no_common_ip_version',
])

/** A person's decision before busy, busy before a device that cannot. */
function rankOf(result: Rejected): number {
  const { status } = result
  if (status >= 600) return 5
  if (status === 486) return 4
  if (status === 480) return result === unavailable ? 1 : 3
  return status < 500 ? 2 : 0
}

/**
 * Voicemail takes the call when phones are absent, silent, busy or forward nowhere, not when the
 * callee declined.
 */
export function isUntaken(result: AttemptResult): boolean {
  if (result.kind === 'withheld') return true
  if (result.kind !== 'rejected') return false
  const { status } = result
  const isFailed = status < 400 || (status >= 500 && status < 600)
  return isFailed || status === 408 || status === 480 || status === 486
}

/** Some phones refuse an INVITE without offer, although RFC 3261 §13.2.1 forbids it. */
export const wantsOffer = (status: number): boolean =>
  status === 400 || status === 415 || status === 488 || status === 500 || status === 606
