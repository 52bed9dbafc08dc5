import { noParams, Params, skipBlanks, trimBlanks } from './headers.ts'

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
  /** What follows `?`: header names and values, escapes resolved. */
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

/** Printable, no separators of a header, every `%` an escape. Wider than the RFC: `#` is a dialled key. */
const userPart = /^(?:[^\0-\x20\x7f"<>@%[\]\\^`{|}]|%[\da-f]{2})*$/i
/** RFC 3261 `pvalue`, `pname`, `hname`, `hvalue`, with what differs between them allowed in all. */
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

/** Of a mark before `end`, or `end`. */
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

/** Resolves escapes. `undefined`: no UTF-8, or what would break a header line. */
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

/** Hosts and ports as they stand in a SIP URI, a Via or a list of listeners (RFC 3261 §25.1 `hostport`). */
export interface HostPort {
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

/** A host as it is compared: in small letters, without brackets and without the final dot of a name. */
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
