/** When a registration is refreshed or tried again. Pure; times in milliseconds. */
import {
  parseExpires,
  parseNameAddr,
  parseRetryAfter,
  parseUri,
  splitList,
} from '../sip-server/message/index.ts'

const RETRY_BASE_MS = 4_000
/** Credentials that were refused do not become right by themselves: carriers ban who insists. */
const REFUSED_BASE_MS = 60_000
const RETRY_MAX_MS = 600_000
/** The longest Retry-After of a carrier that is followed. */
const RETRY_AFTER_MAX_SECONDS = 3_600
/** Whatever a carrier grants, we do not come more often. */
const MIN_REFRESH_MS = 5_000

/** Between 75 and 90 % of what was granted, so that many registrations do not come together. */
export function refreshAfterMs(grantedSeconds: number, random: () => number): number {
  return Math.max(MIN_REFRESH_MS, grantedSeconds * 1_000 * (0.75 + 0.15 * random()))
}

/**
 * RFC 5626 §4.5: doubling from failure to failure (`failures` counts this one), drawn from the
 * upper half. `status` 0: no answer.
 */
export function retryAfterMs(
  failures: number,
  status: number,
  retryAfter: string | undefined,
  random: () => number,
): number {
  const asked = parseRetryAfter(retryAfter ?? '')
  if (asked !== undefined && status >= 500)
    return Math.min(asked, RETRY_AFTER_MAX_SECONDS) * 1_000 + RETRY_BASE_MS * random()
  const base = status >= 400 && status < 500 ? REFUSED_BASE_MS : RETRY_BASE_MS
  const delay = Math.min(base * 2 ** Math.min(failures - 1, 16), RETRY_MAX_MS)
  return delay * (0.5 + 0.5 * random())
}

/**
 * What the carrier granted, in seconds: the `expires` of our Contact in its answer, the Expires
 * header, or else what was asked for (RFC 3261 §10.2.4).
 */
export function grantedSecondsOf(
  answer: { readonly contact: string | undefined; readonly expires: string | undefined },
  user: string,
  askedSeconds: number,
): number {
  const granted = splitList(answer.contact ?? '')
    .map(parseNameAddr)
    .filter((contact) => contact && isSameName(parseUri(contact.uri)?.user ?? '', user))
    .map((contact) => parseExpires(contact?.params.get('expires') ?? ''))
    .filter((seconds) => seconds !== undefined)
  if (granted.length > 0) return Math.max(...granted)
  return parseExpires(answer.expires?.trim() ?? '') ?? askedSeconds
}

const isSameName = (one: string, other: string): boolean =>
  one.toLowerCase() === other.toLowerCase()
