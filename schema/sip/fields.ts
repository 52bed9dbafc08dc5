import {
  endOfQuoted,
  isToken,
  Params,
  parseParams,
  skipBlanks,
  splitList,
  trimBlanks,
  unquote,
  noParams,
} from './headers.ts'

/** From, To, Contact, Route, Refer-To, P-Asserted-Identity … (RFC 3261 §20.10). */
export class NameAddr {
  /** The name without its quotes, quoted pairs resolved; '' when absent. */
  readonly displayName: string
  /** The URI as sent, of any scheme, without angle brackets. */
  readonly uri: string
  /** Parameters of the header, not of the URI. Their names are in lower case. */
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
 * Reads one `name-addr` or `addr-spec` with its parameters. Without angle brackets everything from
 * the first `;` belongs to the header, and the URI may hold neither comma nor question mark (§20).
 * A display name that breaks the grammar is dropped: gateways exist that write such names, and the
 * address is clear without it.
 */
export const parseNameAddr = (value: string): NameAddr | undefined =>
  parseExactly(value) ?? parseNameless(value)

/** RFC 4475 §3.1.2.6 allows to guess where the name ends, if only one address can be meant. */
function parseNameless(value: string): NameAddr | undefined {
  const open = value.indexOf('<')
  const close = value.indexOf('>')
  const isSole = open === value.lastIndexOf('<') && close === value.lastIndexOf('>')
  // `<` at the start has no name before it.
  return open > 0 && isSole ? inAngles(value, open, '') : undefined
}

function parseExactly(value: string): NameAddr | undefined {
  const start = skipBlanks(value, 0)
  if (value.charCodeAt(start) === 0x22) {
    const end = endOfQuoted(value, start)
    if (end === -1) return undefined
    const open = skipBlanks(value, end)
    return inAngles(value, open, unquote(value.slice(start, end)))
  }
  const open = value.indexOf('<', start)
  if (open === -1) return bare(value, start)
  const displayName = trimBlanks(value.slice(start, open))
  return unquotedName.test(displayName) ? inAngles(value, open, displayName) : undefined
}

/**
 * The To of a response. Peers exist that add their tag to a To which has it already; the first is
 * the one that the dialog knows, and the response is identified by its branch (RFC 3261 §17.1.3).
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
 * Preference of a contact in thousandths, 0 to 1000 (RFC 3261 §20.10 `q`). The highest where none
 * is given, or one that is no `qvalue`.
 */
export function qValueOf({ params }: Pick<NameAddr, 'params'>): number {
  const q = params.get('q') ?? ''
  return qvalue.test(q) ? Math.min(1_000, Math.round(Number(q) * 1_000)) : 1_000
}

const qvalue = /^[01](\.\d{0,3})?$/

/** The form of nearly every address; a value that matches is correct without further parsing. */
const plainAddress =
  /^(?:"[\w .+-]*" ?)?<sip:(?:[\w.+-]+@)?\w[\w.-]*(?::(?:[1-9]\d{0,3}|[1-5]\d{4}))?(?:;transport=[a-z]+)?>(?:;tag=[\w.-]+)?$/i

export const isPlainAddress = (value: string): boolean => plainAddress.test(value)

/** The tag of a plain address; '' when it has none. Undefined: the value has to be parsed. */
export const plainTagOf = (value: string | undefined): string | undefined =>
  value !== undefined && isPlainAddress(value)
    ? value.slice(value.indexOf('>') + '>;tag='.length)
    : undefined

/** The tag of a From or To, also of one that is no name-addr; '' when it has none. */
export function tagOf(value = ''): string {
  const plain = plainTagOf(value)
  if (plain !== undefined) return plain
  // A display name and a URI may have what looks like one.
  const params = value.slice(value.lastIndexOf('>') + 1)
  return /;\s*tag\s*=\s*([^\s;,]+)/i.exec(params)?.[1] ?? ''
}

/** Wider than `*(token LWS)`: unquoted UTF-8 and brackets are common and do no harm. */
const unquotedName = /^[^",;:@<>\\]*$/
/**
 * A scheme, and nothing that no URI holds unescaped (RFC 3986 §2): blanks, controls, quotes,
 * brackets.
 */
const absoluteUri = /^[A-Za-z][\w+.-]*:[^\0-\x20\x7f"<>]+$/

function inAngles(value: string, open: number, displayName: string): NameAddr | undefined {
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
  /** The host as sent, IPv6 without brackets. */
  readonly host: string
  /** 0 when absent. */
  readonly port: number
  /** '' when absent. */
  readonly branch: string
  /** `rport` without a value is ''. */
  readonly params: Params
}

const slash = 0x2f

/**
 * Reads one Via value; blanks may stand around its slashes and its colon. `undefined`: unreadable.
 */
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
 * Position of the transport after `SIP / 2.0 /`; -1 when the value does not start so. Another
 * version is read as well, so that a 505 finds its way back.
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

/**
 * RFC 3262 §7.2: `776656 1 INVITE`. Text behind the method is ignored: callers exist that repeat
 * it.
 */
export function parseRAck(value: string): RAck | undefined {
  const match = /^(\d{1,10})[ \t]+(\d+[ \t]+[^ \t]+)(?:[ \t]|$)/.exec(value)
  const rseq = parseNumber(match?.[1] ?? '', 2 ** 32 - 1)
  const cseq = parseCSeq(match?.[2] ?? '')
  return rseq === undefined || cseq === undefined ? undefined : { rseq, cseq }
}

/**
 * A longer session counts as one of a day: RFC 4028 knows no maximum, and a peer that asks for a
 * hundred years would have a call go on for ever when its other side has vanished.
 */
const MAX_SESSION_SECONDS = 86_400

export interface SessionExpires {
  /** At most `MAX_SESSION_SECONDS`. */
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

/**
 * RFC 3261 §20.33: seconds, behind which a comment and parameters may stand: `18000
 * (lunch);duration=3600`.
 */
export function parseRetryAfter(value: string): number | undefined {
  const [, digits = ''] = /^[ \t]*(\d{1,10})(?:[ \t(;]|$)/.exec(value) ?? []
  return parseNumber(digits, 2 ** 32 - 1)
}

/** RFC 4028 §5: seconds, bounded as those of a session; parameters are allowed and mean nothing. */
export const parseMinSE = (value: string): number | undefined => parseDelta(value)?.number

function parseDelta(value: string) {
  const digits = /^\d+/.exec(value)?.[0] ?? ''
  const params = parseParams(value, digits.length)
  if (digits === '' || params === undefined) return undefined
  return { number: Math.min(Number(digits), MAX_SESSION_SECONDS), params }
}

interface Reason {
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

// Readers of addresses that may break the grammar: identities, diversions and targets come from
// peers of all kinds, and a strange spelling is no reason to refuse a call. Every function takes
// one pass over its text and returns a value for any input.

/** Reads the first name-addr or addr-spec of a header value. Parts that cannot be read are ''. */
export function readAddress(value: string): { readonly displayName: string; readonly uri: string } {
  let displayName = ''
  let start = 0
  const isQuoted = value.startsWith('"')
  if (isQuoted) {
    const end = endOfQuoted(value, 0)
    // The name never ends: only the brackets show where the address stands.
    if (end === -1) return { displayName, uri: inBrackets(value) }
    start = end
    displayName = unquote(value.slice(0, end))
  }
  const open = value.indexOf('<', start)
  const comma = value.indexOf(',', start)
  const isBefore = comma !== -1 && comma < open
  if (open === -1 || (isBefore && (displayName !== '' || withScheme.test(value)))) {
    const end = value.slice(start).search(/[;,\s]/)
    return { displayName, uri: value.slice(start, end === -1 ? undefined : start + end) }
  }
  if (!isQuoted) displayName = value.slice(start, open).trim()
  // The rule of `parseNameAddr`: a name that goes on behind its quotes is none.
  else if (trimBlanks(value.slice(start, open)) !== '') displayName = ''
  const close = value.indexOf('>', open)
  return { displayName, uri: value.slice(open + 1, close === -1 ? undefined : close) }
}

const withScheme = /^\s*(?:sips?|tel):/i

/** The text in the first angle brackets; '' without any. */
function inBrackets(value: string): string {
  const open = value.indexOf('<')
  const close = value.indexOf('>', open)
  return open === -1 || close === -1 ? '' : value.slice(open + 1, close)
}

/** Reads the one URI of a value such as Refer-To. `undefined`: there is none, or more than one. */
export function readSoleUri(value: string): string | undefined {
  const open = value.indexOf('<')
  if (open === -1) {
    const uri = trimBlanks(value.split(';', 1)[0] ?? '')
    return uri === '' || /[,\s]/.test(uri) ? undefined : uri
  }
  const close = value.indexOf('>', open)
  if (close === -1 || value.includes('<', close)) return undefined
  return trimBlanks(value.slice(open + 1, close)) || undefined
}

/** The parts of a URI as they are written, whether or not `parseUri` accepts it. */
export interface ReadUri {
  /** In small letters; '' when absent. */
  readonly scheme: string
  /** The user part without password, escapes kept; of a tel URI the number. '' when absent. */
  readonly user: string
  /** `host[:port]` as written; '' of a tel URI. */
  readonly hostPort: string
  /** The text from the first `;` behind the address up to the headers. */
  readonly params: string
  /** The text behind the `?`, escapes kept. */
  readonly headers: string
}

/** Takes a sip, sips or tel URI apart; of other schemes only the scheme is read. */
export function readUri(uri: string): ReadUri {
  const colon = uri.indexOf(':')
  const scheme = uri.slice(0, Math.max(colon, 0)).toLowerCase()
  if (scheme === 'tel') {
    const { before: user, after: params } = cut(uri.slice(colon + 1), ';')
    return { scheme, user, hostPort: '', params, headers: '' }
  }
  if (scheme !== 'sip' && scheme !== 'sips')
    return { scheme, user: '', hostPort: '', params: '', headers: '' }
  const at = uri.lastIndexOf('@')
  const userInfo = at === -1 ? '' : uri.slice(colon + 1, at)
  const { before: address, after: headers } = cut(uri.slice((at === -1 ? colon : at) + 1), '?')
  const { before: hostPort, after: params } = cut(address, ';')
  // RFC 3261 §19.1.1 warns of passwords: they go no further.
  return { scheme, user: cut(userInfo, ':').before, hostPort, params, headers: headers.slice(1) }
}

/** A text up to a mark, and from it on. */
function cut(text: string, mark: string): { readonly before: string; readonly after: string } {
  const at = text.indexOf(mark)
  return at === -1
    ? { before: text, after: '' }
    : { before: text.slice(0, at), after: text.slice(at) }
}

/** A SIP, SIPS (RFC 3261 §19.1) or tel URI (RFC 3966). Escapes are kept as written. */
export interface Uri {
  readonly scheme: 'sip' | 'sips' | 'tel'
  /** User part; of a tel URI the number. '' when absent. */
  readonly user: string
  readonly password: string
  /** IPv6 without brackets; '' of a tel URI. */
  readonly host: string
  /** 0 when absent. */
  readonly port: number
  /** Names lower case; a parameter without value is ''. */
  readonly params: Params
  /** The headers behind `?`: names and values, escapes resolved. */
  readonly headers: readonly (readonly [string, string])[]
}

/** Reads a sip, sips or tel URI. `undefined`: another scheme, or not what the grammar allows. */
export function parseUri(text: string): Uri | undefined {
  if (text.startsWith('sip:')) return parseSip('sip', text, 4)
  const colon = text.indexOf(':')
  const scheme = text.slice(0, colon).toLowerCase()
  if (scheme === 'tel') return parseTel(text.slice(colon + 1))
  return scheme === 'sip' || scheme === 'sips' ? parseSip(scheme, text, colon + 1) : undefined
}

/**
 * Printable, no separators of a header, every `%` an escape. Wider than the RFC: `#` is a dialled
 * key.
 */
const userPart = /^(?:[^\0-\x20\x7f"<>@%[\]\\^`{|}]|%[\da-f]{2})*$/i
/** RFC 3261 `pvalue`, `pname`, `hname`, `hvalue`, with the characters of each allowed in all. */
const parameterPart = /^(?:[^\0-\x20\x7f"<>@%\\^`{|};?]|%[\da-f]{2})*$/i

function parseSip(scheme: 'sip' | 'sips', text: string, from: number): Uri | undefined {
  const at = text.indexOf('@', from)
  const userInfo = at === -1 ? '' : text.slice(from, at)
  if (at === from || !userPart.test(userInfo)) return undefined
  const colon = userInfo.indexOf(':')
  const hostAt = at === -1 ? from : at + 1
  const headersAt = positionOf('?', text, hostAt, text.length)
  const paramsAt = positionOf(';', text, hostAt, headersAt)
  const sentBy = parseHostPort(text.slice(hostAt, paramsAt))
  const params =
    paramsAt === headersAt ? noParams : parseUriParams(text.slice(paramsAt + 1, headersAt))
  const headers = parseUriHeaders(text.slice(headersAt + 1))
  if (sentBy === undefined || params === undefined || headers === undefined) return undefined
  if (colon === 0 || headersAt === text.length - 1) return undefined
  return {
    scheme,
    user: colon === -1 ? userInfo : userInfo.slice(0, colon),
    password: colon === -1 ? '' : userInfo.slice(colon + 1),
    host: sentBy.host,
    port: sentBy.port,
    params,
    headers,
  }
}

/** Returns the position of a mark before `end`, or `end`. */
function positionOf(mark: string, text: string, from: number, end: number): number {
  const at = text.indexOf(mark, from)
  return at === -1 || at > end ? end : at
}

/** RFC 3966 §3: a global number, or a local one with letters of the keypad. */
const telNumber = /^(?:\+[\d().-]*\d[\d().-]*|[\da-f*#().-]+)$/i

function parseTel(rest: string): Uri | undefined {
  const paramsAt = positionOf(';', rest, 0, rest.length)
  const user = rest.slice(0, paramsAt)
  const params = paramsAt === rest.length ? noParams : parseUriParams(rest.slice(paramsAt + 1))
  if (!telNumber.test(user) || params === undefined) return undefined
  return { scheme: 'tel', user, password: '', host: '', port: 0, params, headers: noHeaders }
}

/** A name twice is not a URI (RFC 3261 §19.1.1). */
function parseUriParams(text: string): Params | undefined {
  const params = new Params()
  for (let from = 0; from <= text.length;) {
    const end = positionOf(';', text, from, text.length)
    const part = text.slice(from, end)
    const equals = positionOf('=', part, 0, part.length)
    const name = part.slice(0, equals).toLowerCase()
    if (name === '' || !parameterPart.test(part)) return undefined
    if (!params.add(name, part.slice(equals + 1))) return undefined
    from = end + 1
  }
  return params
}

function parseUriHeaders(text: string): readonly (readonly [string, string])[] | undefined {
  if (text === '') return noHeaders
  const headers: (readonly [string, string])[] = []
  for (const part of text.split('&')) {
    const equals = part.indexOf('=')
    const value = unescapeText(part.slice(equals + 1))
    if (equals < 1 || value === undefined || !hvalue.test(part)) return undefined
    headers.push([part.slice(0, equals), value])
  }
  return headers
}

const noHeaders: readonly (readonly [string, string])[] = []
const hvalue = /^(?:[^\0-\x20\x7f"<>@%\\^`{|};]|%[\da-f]{2})*$/i

/** Resolves escapes. `undefined`: no UTF-8, or a character that would break a header line. */
export function unescapeText(text: string): string | undefined {
  if (!text.includes('%')) return text
  try {
    const plain = decodeURIComponent(text)
    return /[\r\n\0]/.test(plain) ? undefined : plain
  } catch {
    return undefined
  }
}

/** Parameters that must stand in both URIs or in neither (RFC 3261 §19.1.4, with its examples). */
const neverIgnored = ['user', 'ttl', 'method', 'maddr', 'transport']

/** Whether two URIs are equivalent (RFC 3261 §19.1.4; tel: RFC 3966 §4). Unreadable: as text. */
export function sameUri(a: string | Uri, b: string | Uri): boolean {
  const [left, right] = [asUri(a), asUri(b)]
  if (left === undefined || right === undefined) return a === b
  if (left.scheme !== right.scheme || left.port !== right.port) return false
  if (left.host.toLowerCase() !== right.host.toLowerCase()) return false
  if (comparableUser(left) !== comparableUser(right)) return false
  if (plainEscapes(left.password) !== plainEscapes(right.password)) return false
  return sameParams(left, right) && comparableHeaders(left) === comparableHeaders(right)
}

const asUri = (uri: string | Uri) => (typeof uri === 'string' ? parseUri(uri) : uri)

const comparableUser = (uri: Uri): string =>
  uri.scheme === 'tel' ? uri.user.replace(/[().-]/g, '').toLowerCase() : plainEscapes(uri.user)

function sameParams(left: Uri, right: Uri): boolean {
  const mustAppear =
    left.scheme === 'tel' ? [...left.params.keys(), ...right.params.keys()] : neverIgnored
  if (mustAppear.some((name) => left.params.has(name) !== right.params.has(name))) return false
  for (const [name, value] of left.params) {
    const other = right.params.get(name)
    if (other !== undefined && comparable(value) !== comparable(other)) return false
  }
  return true
}

const comparable = (value: string): string => plainEscapes(value).toLowerCase()

const comparableHeaders = (uri: Uri): string =>
  JSON.stringify(uri.headers.map(([name, value]) => [name.toLowerCase(), value]).toSorted(byText))

function byText(a: readonly string[], b: readonly string[]): number {
  const [left, right] = [a.join('='), b.join('=')]
  return left < right ? -1 : left > right ? 1 : 0
}

/** An escaped character equals the plain one unless it is reserved. */
const plainEscapes = (text: string): string =>
  text.replace(/%[\da-f]{2}/gi, (escape) => {
    const character = String.fromCharCode(parseInt(escape.slice(1), 16))
    return /[\w.!~*'()-]/.test(character) ? character : escape.toUpperCase()
  })

/**
 * Hosts and ports as they stand in a SIP URI, a Via or a list of listeners (RFC 3261 §25.1
 * `hostport`).
 */
interface HostPort {
  /** A name, an IPv4 address, or an IPv6 address without brackets. */
  readonly host: string
  /** 0 when absent. */
  readonly port: number
}

/** A host as it stands in a URI: an IPv6 address in brackets, which must have none yet. */
export const bracketed = (host: string): string => (host.includes(':') ? `[${host}]` : host)

/** A host without the brackets of an IPv6 reference. */
export const withoutBrackets = (host: string): string =>
  host.startsWith('[') && host.endsWith(']') ? host.slice(1, -1) : host

/**
 * A host as it is compared: in small letters, without brackets and without the final dot of a name.
 */
export const plainHost = (host: string): string =>
  withoutBrackets(host.toLowerCase()).replace(/\.$/, '')

/** `host:port`, IPv6 in brackets; port 0 is left out. */
export const hostPort = (host: string, port: number): string =>
  port === 0 ? bracketed(host) : `${bracketed(host)}:${port}`

const colon = 0x3a
const openBracket = 0x5b
const hostName = /^[\w-][\w.-]*$/
/** Whether it is an address at all is left to the socket that would use it. */
const ipv6 = /^[\da-f]*:[\da-f:.]+$/i

/** Reads `host[:port]` with a name, an IPv4 address or a bracketed IPv6 address. */
export function parseHostPort(text: string): HostPort | undefined {
  const isBracketed = text.charCodeAt(0) === openBracket
  const delimiter = text.indexOf(isBracketed ? ']' : ':')
  if (delimiter === -1) return hostName.test(text) ? { host: text, port: 0 } : undefined
  const host = isBracketed ? text.slice(1, delimiter) : trimBlanks(text.slice(0, delimiter))
  if (!(isBracketed ? ipv6 : hostName).test(host)) return undefined
  const colonAt = isBracketed ? skipBlanks(text, delimiter + 1) : delimiter
  if (colonAt === text.length) return { host, port: 0 }
  const port = parsePort(text, skipBlanks(text, colonAt + 1))
  return text.charCodeAt(colonAt) !== colon || port === 0 ? undefined : { host, port }
}

/** 1 to 65535, up to the end of the text; 0 for anything else. */
function parsePort(text: string, from: number): number {
  if (text.length - from > 5) return 0
  let port = 0
  for (let at = from; at < text.length; at++) {
    const digit = text.charCodeAt(at) - 0x30
    if (digit < 0 || digit > 9) return 0
    port = port * 10 + digit
  }
  return port <= 65_535 ? port : 0
}
