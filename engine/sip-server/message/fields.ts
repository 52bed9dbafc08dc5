import {
  endOfQuoted,
  isToken,
  type Params,
  parseParams,
  skipBlanks,
  splitList,
  trimBlanks,
  unquote,
} from './headers.ts'
import { parseHostPort, parseUri, type Uri } from './uri.ts'

/** From, To, Contact, Route, Refer-To, P-Asserted-Identity … (RFC 3261 §20.10). */
export class NameAddr {
  /** Without its quotes, quoted pairs resolved; '' when absent. */
  readonly displayName: string
  /** As sent, without angle brackets. Any scheme. */
  readonly uri: string
  /** Of the header, not of the URI. Names lower case. */
  readonly params: Params
  #parsed: Uri | undefined | null = null

  constructor(displayName: string, uri: string, params: Params) {
    this.displayName = displayName
    this.uri = uri
    this.params = params
  }

  /** Its parts, read when they are first asked for; `undefined` as from `parseUri`. */
  get parsedUri(): Uri | undefined {
    if (this.#parsed === null) this.#parsed = parseUri(this.uri)
    return this.#parsed
  }
}

/**
 * Reads one `name-addr` or `addr-spec` with its parameters. Without angle brackets everything from the
 * first `;` belongs to the header, and the URI may hold neither comma nor question mark (§20).
 */
export function parseNameAddr(value: string): NameAddr | undefined {
  const start = skipBlanks(value, 0)
  if (value.charCodeAt(start) === 0x22) {
    const end = endOfQuoted(value, start)
    if (end === -1) return undefined
    const open = skipBlanks(value, end)
    return bracketed(value, open, unquote(value.slice(start, end)))
  }
  const open = value.indexOf('<', start)
  if (open === -1) return bare(value, start)
  const displayName = trimBlanks(value.slice(start, open))
  return unquotedName.test(displayName) ? bracketed(value, open, displayName) : undefined
}

/**
 * The To of a response. Peers exist that add their tag to a To which has it already; the first is
 * the one that the dialog knows, and the response is told by its branch (RFC 3261 §17.1.3).
 */
export function parseAnsweredTo(value: string): NameAddr | undefined {
  const address = parseNameAddr(value)
  if (address !== undefined) return address
  const start = value.lastIndexOf('>') + 1
  const [first, second] = value.slice(start).matchAll(/;\s*tag\s*=[^;]*/gi)
  if (first === undefined || second === undefined) return undefined
  return parseNameAddr(value.slice(0, start + first.index + first[0].length))
}

/**
 * Preference of a contact in thousandths, 0 to 1000 (RFC 3261 §20.10 `q`). The highest where none is given,
 * or one that is no `qvalue`.
 */
export function qValueOf({ params }: Pick<NameAddr, 'params'>): number {
  const q = params.get('q') ?? ''
  return qvalue.test(q) ? Math.min(1_000, Math.round(Number(q) * 1_000)) : 1_000
}

const qvalue = /^[01](\.\d{0,3})?$/

/** The tag of a From or To, also of one that is no name-addr; '' when it has none. */
export const tagOf = (value: string | undefined): string =>
  /;\s*tag=([^;\s]+)/i.exec(value ?? '')?.[1] ?? ''

/** Wider than `*(token LWS)`: unquoted UTF-8 and brackets are common and do no harm. */
const unquotedName = /^[^",;:@<>\\]*$/
/** A scheme, and nothing that no URI holds unescaped (RFC 3986 §2): blanks, controls, quotes, brackets. */
const absoluteUri = /^[A-Za-z][\w+.-]*:[^\0-\x20\x7f"<>]+$/

function bracketed(value: string, open: number, displayName: string): NameAddr | undefined {
  if (value.charCodeAt(open) !== 0x3c) return undefined
  const close = value.indexOf('>', open)
  if (close === -1) return undefined
  return withParams(value, displayName, value.slice(open + 1, close), close + 1)
}

function bare(value: string, start: number): NameAddr | undefined {
  const semicolon = value.indexOf(';', start)
  const end = semicolon === -1 ? value.length : semicolon
  const uri = trimBlanks(value.slice(start, end))
  return uri.includes('?') || uri.includes(',') ? undefined : withParams(value, '', uri, end)
}

function withParams(
  value: string,
  displayName: string,
  uri: string,
  paramsAt: number,
): NameAddr | undefined {
  if (!absoluteUri.test(uri)) return undefined
  const params = parseParams(value, paramsAt)
  return params && new NameAddr(displayName, uri, params)
}

/** One value of RFC 3261 §20.42. */
export interface Via {
  /** Upper case: `UDP`, `TCP`, `TLS`, `WS`, `WSS`, or whatever was sent. */
  readonly protocol: string
  /** As sent, IPv6 without brackets. */
  readonly host: string
  /** 0 when absent. */
  readonly port: number
  /** '' when absent. */
  readonly branch: string
  /** `rport` without a value is ''. */
  readonly params: Params
}

const slash = 0x2f

/** Reads one Via value; blanks may stand around its slashes and its colon. `undefined`: unreadable. */
export function parseVia(value: string): Via | undefined {
  const protocolAt = afterVersion(value)
  if (protocolAt === -1) return undefined
  const protocolEnd = endOf(value, protocolAt)
  const protocol = value.slice(protocolAt, protocolEnd)
  const hostAt = skipBlanks(value, protocolEnd)
  if (!isToken(protocol)) return undefined
  const paramsAt = startOfParams(value, hostAt)
  const sentBy = parseHostPort(trimBlanks(value.slice(hostAt, paramsAt)))
  const params = parseParams(value, paramsAt)
  if (sentBy === undefined || params === undefined) return undefined
  return {
    protocol: protocol.toUpperCase(),
    host: sentBy.host,
    port: sentBy.port,
    branch: params.get('branch') ?? '',
    params,
  }
}

/**
 * Position of the transport after `SIP / 2.0 /`; -1 when the value does not start so. Another version is
 * read as well, so that a 505 finds its way back.
 */
function afterVersion(value: string): number {
  if (value.startsWith('SIP/2.0/')) return skipBlanks(value, 8)
  const match = /^SIP[ \t]*\/[ \t]*\d+\.\d+[ \t]*\/[ \t]*/i.exec(value)
  return match === null ? -1 : match[0].length
}

function endOf(value: string, from: number): number {
  let at = from
  while (at < value.length && value.charCodeAt(at) > 0x20 && value.charCodeAt(at) !== slash) at++
  return at
}

function startOfParams(value: string, from: number): number {
  const at = value.indexOf(';', from)
  return at === -1 ? value.length : at
}

/** Small header values: each parser answers `undefined` for what its grammar does not allow. */
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
