/** Small header values: each parser answers `undefined` for what its grammar does not allow. */
import { isToken, parseParams, splitList, trimBlanks } from './headers.ts'

export interface CSeq {
  readonly number: number
  readonly method: string
}

/** RFC 3261 §8.1.1.5: less than 2^31. */
const maxSequence = 2 ** 31 - 1

/** RFC 3261 §20.16: `4711 INVITE`; leading zeros are allowed. */
export function parseCSeq(value: string): CSeq | undefined {
  let at = 0
  let number = 0
  for (; at < value.length; at++) {
    const digit = value.charCodeAt(at) - 0x30
    if (digit < 0 || digit > 9) break
    number = number * 10 + digit
  }
  const space = at
  while (value.charCodeAt(at) === 0x20 || value.charCodeAt(at) === 0x09) at++
  const method = value.slice(at)
  if (space === 0 || at === space || number > maxSequence || !isToken(method)) return undefined
  return { number, method }
}

/** An unsigned decimal of at most `max`; leading zeros are allowed, signs and blanks are not. */
function parseNumber(value: string, max: number): number | undefined {
  if (value === '' || value.length > 64) return undefined
  let number = 0
  for (let at = 0; at < value.length; at++) {
    const digit = value.charCodeAt(at) - 0x30
    if (digit < 0 || digit > 9) return undefined
    number = number * 10 + digit
  }
  return number <= max ? number : undefined
}

/** RFC 3261 §20.22: 0 to 255. */
export const parseMaxForwards = (value: string): number | undefined => parseNumber(value, 255)

/** RFC 3261 §20.14: bytes of the body. */
export const parseContentLength = (value: string): number | undefined =>
  parseNumber(value, Number.MAX_SAFE_INTEGER)

/** RFC 3261 §20.19: seconds, 0 to 2^32-1; a larger number counts as that largest one. */
export function parseExpires(value: string): number | undefined {
  const seconds = /^\d+$/.test(value) ? Number(value) : undefined
  return seconds === undefined ? undefined : Math.min(seconds, 2 ** 32 - 1)
}

export interface RAck {
  readonly rseq: number
  readonly cseq: CSeq
}

/** RFC 3262 §7.2: `776656 1 INVITE`. What follows the method is ignored: callers exist that repeat it. */
export function parseRAck(value: string): RAck | undefined {
  const match = /^(\d{1,10})[ \t]+(\d+[ \t]+[^ \t]+)(?:[ \t]|$)/.exec(value)
  const rseq = parseNumber(match?.[1] ?? '', 2 ** 32 - 1)
  const cseq = parseCSeq(match?.[2] ?? '')
  return rseq === undefined || cseq === undefined ? undefined : { rseq, cseq }
}

export interface SessionExpires {
  readonly seconds: number
  readonly refresher: 'uac' | 'uas' | undefined
}

/** RFC 4028 §4: `1800;refresher=uac`. An unknown refresher counts as none. */
export function parseSessionExpires(value: string): SessionExpires | undefined {
  const seconds = parseDelta(value)
  if (seconds === undefined) return undefined
  const refresher = seconds.params.get('refresher')?.toLowerCase()
  return {
    seconds: seconds.number,
    refresher: refresher === 'uac' || refresher === 'uas' ? refresher : undefined,
  }
}

/** RFC 3261 §20.33: seconds, behind which a comment and parameters may stand: `18000 (lunch);duration=3600`. */
export function parseRetryAfter(value: string): number | undefined {
  const [, digits = ''] = /^[ \t]*(\d{1,10})(?:[ \t(;]|$)/.exec(value) ?? []
  return parseNumber(digits, 2 ** 32 - 1)
}

/** RFC 4028 §5: seconds; parameters are allowed and mean nothing. */
export const parseMinSE = (value: string): number | undefined => parseDelta(value)?.number

function parseDelta(value: string) {
  const digits = /^\d{1,10}/.exec(value)?.[0] ?? ''
  const number = parseNumber(digits, 2 ** 32 - 1)
  const params = parseParams(value, digits.length)
  return number === undefined || params === undefined ? undefined : { number, params }
}

export interface Reason {
  /** Lower case: `sip`, `q.850`. */
  readonly protocol: string
  readonly cause: number | undefined
  readonly text: string
}

/** One value of RFC 3326 §2: `Q.850;cause=16;text="Normal call clearing"`. */
export function parseReason(value: string): Reason | undefined {
  const end = value.search(/[; \t]|$/)
  const protocol = value.slice(0, end)
  const params = parseParams(value, end)
  if (!isToken(protocol) || params === undefined) return undefined
  const cause = parseNumber(params.get('cause') ?? '', 2 ** 31)
  return { protocol: protocol.toLowerCase(), cause, text: params.get('text') ?? '' }
}

/** Option tags of Require, Supported, Proxy-Require, Unsupported: lower case, in order. */
export const parseOptionTags = (values: readonly string[]): readonly string[] =>
  values.flatMap(splitList).map((tag) => tag.toLowerCase())

/** RFC 3891 §6.1: the dialog that an INVITE takes the place of. */
export interface Replaces {
  readonly callId: string
  /** Our tag, where the dialog is one of ours. */
  readonly toTag: string
  /** The peer's. */
  readonly fromTag: string
  /** Only a dialog that is not answered yet may be replaced. */
  readonly isEarlyOnly: boolean
}

/** `undefined`: it cannot be read, or there is more than one, which RFC 3891 §3 forbids. */
export function parseReplaces(value: string): Replaces | undefined {
  const end = value.indexOf(';')
  if (end === -1 || value.includes(',')) return undefined
  const callId = trimBlanks(value.slice(0, end))
  const params = parseParams(value, end)
  const [toTag = '', fromTag = ''] = [params?.get('to-tag'), params?.get('from-tag')]
  if (params === undefined || callId === '' || toTag === '' || fromTag === '') return undefined
  return { callId, toTag, fromTag, isEarlyOnly: params.has('early-only') }
}
