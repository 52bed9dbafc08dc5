/**
 * Rules by which a call hunts after an answer of a carrier, as they are written and stored: which
 * answers move on, how far, and what the caller gets to see. Pure.
 */

import { type HuntingRules, type MappedAnswer, redirectPolicies } from '../contracts/hunting.ts'

export const maxAnswerMatches = 32
export const maxMappedAnswers = 32
/** Gateways that a call is sent to at most. */
export const maxHuntingAttempts = 16
export const maxHuntingSeconds = 180

export const usualHunting: HuntingRules = {
  nextOn: null,
  stopOn: [],
  maxAttempts: null,
  maxSeconds: null,
  redirects: 'refuse',
  answers: [],
}

/** A final answer, as rules match it. */
export interface MatchedAnswer {
  readonly status: number
  /** The cause of ITU-T Q.850 in its Reason header (RFC 3326); undefined: it names none. */
  readonly cause: () => number | undefined
}

/**
 * The normal form of a status (`503`), a class (`5xx`) or a cause (`Q.850;cause=34`). Undefined: it
 * is none of them, or no final answer of a refusal.
 */
export function answerMatch(written: string): string | undefined {
  const text = written.trim()
  if (/^[3-6](?:\d\d|xx)$/i.test(text)) return text.toLowerCase()
  const cause = /^Q\.850\s*;\s*cause\s*=\s*(\d{1,3})$/i.exec(text)?.[1]
  if (cause === undefined) return undefined
  const number = Number(cause)
  return number >= 1 && number <= 127 ? `${CAUSE}${number}` : undefined
}

const CAUSE = 'Q.850;cause='

/** Whether one of these matches the answer. */
export function matchesAnswer(matches: readonly string[], answer: MatchedAnswer): boolean {
  for (const match of matches) if (isMatch(match, answer)) return true
  return false
}

export function isMatch(match: string, { status, cause }: MatchedAnswer): boolean {
  if (match.startsWith(CAUSE)) return Number(match.slice(CAUSE.length)) === cause()
  return match.endsWith('xx') ? match.startsWith(String(status)[0] ?? '') : match === String(status)
}

/** Reads what is stored. Undefined: it makes no sense. */
export function readHunting(json: string): HuntingRules | undefined {
  const stored = parsed(json)
  if (typeof stored !== 'object' || stored === null) return undefined
  const member = (name: string): unknown => Reflect.get(stored, name)
  const nextOn = member('next_on') ?? null
  const stopOn = member('stop_on') ?? []
  const maxAttempts = member('max_attempts') ?? null
  const maxSeconds = member('max_seconds') ?? null
  const redirects = redirectPolicies.find((each) => each === (member('redirects') ?? 'refuse'))
  const answers = member('answers') ?? []
  if (nextOn !== null && !areMatches(nextOn)) return undefined
  if (!areMatches(stopOn) || redirects === undefined) return undefined
  if (!isLimit(maxAttempts) || !isLimit(maxSeconds) || !Array.isArray(answers)) return undefined
  const mapped = answers.map(mappedIn)
  const known = mapped.filter((each) => each !== undefined)
  return known.length < mapped.length
    ? undefined
    : { nextOn, stopOn, maxAttempts, maxSeconds, redirects, answers: known }
}

const areMatches = (value: unknown): value is readonly string[] =>
  Array.isArray(value) &&
  value.every((each) => typeof each === 'string' && answerMatch(each) === each)

const isLimit = (value: unknown): value is number | null =>
  value === null || (typeof value === 'number' && Number.isSafeInteger(value) && value > 0)

function mappedIn(value: unknown): MappedAnswer | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const match: unknown = Reflect.get(value, 'match')
  const status: unknown = Reflect.get(value, 'status')
  const reason: unknown = Reflect.get(value, 'reason') ?? null
  const isRead = typeof match === 'string' && answerMatch(match) === match
  if (!isRead || typeof status !== 'number' || !isShownStatus(status)) return undefined
  return typeof reason === 'string' || reason === null ? { match, status, reason } : undefined
}

/** A challenge is never shown to a caller: nobody could answer it. */
export const isShownStatus = (status: number): boolean =>
  Number.isSafeInteger(status) && status >= 400 && status < 700 && !isChallenge.has(status)

const isChallenge: ReadonlySet<number> = new Set([401, 407])

function parsed(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch {
    return undefined
  }
}
