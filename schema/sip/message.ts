import statuses from 'sip-status'
import { knownName, splitList, trimBlanks } from './headers.ts'
import {
  type CSeq,
  type NameAddr,
  parseAnsweredTo,
  parseCSeq,
  parseMaxForwards,
  parseNameAddr,
  parseVia,
  plainTagOf,
  type Via,
  parseUri,
  type Uri,
} from './fields.ts'
import { isAscii, isUtf8 } from 'node:buffer'

/** The protocol by which a message travels. */
export type Protocol = 'udp' | 'tcp' | 'tls' | 'ws' | 'wss'

/** One header as a stretch of the message's text. A known name has its canonical spelling. */
export interface HeaderLine {
  readonly name: string
  readonly valueStart: number
  /** May lie after line breaks: then the value is folded. */
  valueEnd: number
}

/** RFC 3261 §7.1 and §7.2. `version` as sent; a request has status 0, a response uri ''. */
export interface StartLine {
  readonly kind: 'request' | 'response'
  readonly method: string
  readonly uri: string
  readonly version: string
  readonly status: number
  readonly reason: string
}

/** The results of the one pass of `parse.ts` over the lines of a text. */
export interface HeaderIndex {
  readonly lines: readonly HeaderLine[]
  /** Position of the first character of the body. */
  readonly bodyStart: number
  readonly hasPlainHeaders: boolean
}

/**
 * One SIP message. The text is the message; lines are indexed once, values are cut out when they
 * are used, and those that every layer uses are cached. Absent and unreadable both read `undefined`
 * (or ''): `checkRequest` is where the difference matters.
 */
export class SipMessage {
  readonly kind: 'request' | 'response'
  /** A response has the method of its CSeq, '' where that is unreadable. */
  readonly method: string
  readonly uri: string
  readonly version: string
  readonly status: number
  readonly reason: string
  readonly text: string
  readonly bodyStart: number
  /**
   * No folded line and no compact name: the header part of `text` suits an application as it is.
   */
  readonly hasPlainHeaders: boolean
  /** The headers in order. */
  readonly lines: readonly HeaderLine[]
  #via: Via | undefined | null = null
  #cseq: CSeq | undefined | null = null
  #from: NameAddr | undefined | null = null
  #to: NameAddr | undefined | null = null
  #contact: NameAddr | undefined | null = null
  #callId: string | undefined
  #fromTag: string | undefined
  #toTag: string | undefined
  #requestUri: Uri | undefined | null = null

  constructor(text: string, start: StartLine, index: HeaderIndex) {
    this.text = text
    this.lines = index.lines
    this.bodyStart = index.bodyStart
    this.hasPlainHeaders = index.hasPlainHeaders
    this.kind = start.kind
    this.uri = start.uri
    this.version = start.version
    this.status = start.status
    this.reason = start.reason
    this.method = start.kind === 'request' ? start.method : (this.cseq?.method ?? '')
  }

  get body(): string {
    return this.text.slice(this.bodyStart)
  }

  get hasBody(): boolean {
    return this.bodyStart < this.text.length
  }

  /** First value of a header, unfolded and trimmed. */
  get(name: string): string | undefined {
    const line = this.#first(name)
    return line && this.#value(line)
  }

  has(name: string): boolean {
    return this.#first(name) !== undefined
  }

  /**
   * Where the first value of a header begins in the text; -1 without one. Canonical spelling only.
   */
  positionOf(name: string): number {
    for (const line of this.lines) if (line.name === name) return line.valueStart
    return -1
  }

  /** Every line of a header, in order. */
  all(name: string): readonly string[] {
    const first = this.#first(name)
    if (first === undefined) return none
    const values: string[] = []
    for (const line of this.lines) if (isNamed(line, first.name)) values.push(this.#value(line))
    return values
  }

  /** Every element of a comma-list header over all its lines, in order (RFC 3261 §7.3.1). */
  list(name: string): readonly string[] {
    const values = this.all(name)
    const first = values[0]
    if (first === undefined) return none
    return values.length === 1 ? splitList(first) : values.flatMap(splitList)
  }

  /** The same as `entries`, without a list. */
  forEach(visit: (name: string, value: string) => void): void {
    for (const line of this.lines) visit(line.name, this.#value(line))
  }

  /**
   * All headers in order: known names canonical and long, unknown ones as sent; values unfolded.
   */
  entries(): readonly (readonly [string, string])[] {
    return this.lines.map((line) => [line.name, this.#value(line)] as const)
  }

  /** The topmost Via. */
  get via(): Via | undefined {
    if (this.#via === null) this.#via = parsed(this.#firstElement('Via'), parseVia)
    return this.#via
  }

  get callId(): string {
    return (this.#callId ??= this.get('Call-ID') ?? '')
  }

  get cseq(): CSeq | undefined {
    if (this.#cseq === null) this.#cseq = parsed(this.get('CSeq'), parseCSeq)
    return this.#cseq
  }

  get from(): NameAddr | undefined {
    if (this.#from === null) this.#from = parsed(this.get('From'), parseNameAddr)
    return this.#from
  }

  get to(): NameAddr | undefined {
    if (this.#to === null)
      this.#to = parsed(this.get('To'), this.kind === 'response' ? parseAnsweredTo : parseNameAddr)
    return this.#to
  }

  /** The first Contact; `undefined` for `*`. */
  get contact(): NameAddr | undefined {
    if (this.#contact === null) this.#contact = parsed(this.#firstElement('Contact'), parseNameAddr)
    return this.#contact
  }

  /** The parts of the Request-URI. */
  get requestUri(): Uri | undefined {
    if (this.#requestUri === null) this.#requestUri = parseUri(this.uri)
    return this.#requestUri
  }

  get fromTag(): string {
    return (this.#fromTag ??= plainTagOf(this.get('From')) ?? this.from?.params.get('tag') ?? '')
  }

  get toTag(): string {
    return (this.#toTag ??= plainTagOf(this.get('To')) ?? this.to?.params.get('tag') ?? '')
  }

  get maxForwards(): number | undefined {
    return parsed(this.get('Max-Forwards'), parseMaxForwards)
  }

  #firstElement(name: string): string | undefined {
    const value = this.get(name)
    return value?.includes(',') ? splitList(value)[0] : value
  }

  #value(line: HeaderLine): string {
    const raw = this.text.slice(line.valueStart, line.valueEnd)
    return !this.hasPlainHeaders && raw.includes('\n') ? unfold(raw) : raw
  }

  /** Finds a header by any spelling of its name. */
  #first(name: string): HeaderLine | undefined {
    for (const line of this.lines) if (line.name === name) return line
    const wanted = knownName(name)
    // Lines have the canonical spelling of a name that is known; another one keeps that of its
    // sender.
    if (wanted === name) return undefined
    return this.lines.find((line) => isNamed(line, wanted ?? name))
  }
}

const none: readonly string[] = []

/** Known names are never spelled otherwise. */
const isNamed = ({ name }: HeaderLine, wanted: string): boolean =>
  name === wanted ||
  (name.length === wanted.length &&
    knownName(wanted) === undefined &&
    name.toLowerCase() === wanted.toLowerCase())

const parsed = <T>(
  value: string | undefined,
  parse: (value: string) => T | undefined,
): T | undefined => (value === undefined ? undefined : parse(value))

/** RFC 3261 §7.3.1: a line break and the blanks around it read as one space. */
const unfold = (raw: string): string =>
  raw
    .split('\n')
    .map(trimLine)
    .filter((part) => part !== '')
    .join(' ')

const trimLine = (line: string): string =>
  trimBlanks(line.endsWith('\r') ? line.slice(0, -1) : line)

// Bytes ⇄ text, without loss for any input. SIP text is UTF-8 (RFC 3261 §7), but a body may hold
// arbitrary bytes (ISUP, SMS). A byte that is not UTF-8 becomes one lone surrogate, U+DC80 to
// U+DCFF, and goes back to the same byte: such a body crosses an application unharmed, and no flag
// has to be carried with the text. (Python knows this as `surrogateescape`.)

/** One message or datagram as text. `encodeMessage` gives back exactly these bytes. */
export function decodeMessage(bytes: Buffer): string {
  // The quickest way to a string, and nearly every message can take it.
  if (isAscii(bytes)) return bytes.toString('latin1')
  return isUtf8(bytes) ? bytes.toString('utf8') : decodeEscaping(bytes)
}

export function encodeMessage(text: string): Buffer {
  const bytes = Buffer.from(text, 'utf8')
  // It has as many bytes as characters: all are ASCII, as in nearly every message.
  if (bytes.length === text.length) return bytes
  return hasEscapedBytes(text) ? encodeEscaped(text) : bytes
}

/** Bytes that a text takes on the wire. */
export function byteLength(text: string): number {
  const length = Buffer.byteLength(text, 'utf8')
  return length !== text.length && hasEscapedBytes(text) ? encodeEscaped(text).length : length
}

/** The last header of a message, and the empty line before its body. */
export const contentLengthLine = (body: string): string =>
  `Content-Length: ${body === '' ? 0 : byteLength(body)}\r\n\r\n`

const escaped = /[\uDC80-\uDCFF]/u

/** Whether a text came from bytes that were not UTF-8. Answered at once for Latin-1 strings. */
export const hasEscapedBytes = (text: string): boolean => escaped.test(text)

const escapeBase = 0xdc00

/**
 * Bytes that are not UTF-8 as the letters of Latin-1 that they mostly are; its control characters
 * as U+FFFD.
 */
export const escapedAsLatin1 = (text: string): string =>
  text.replace(/[\uDC80-\uDCFF]/gu, (character) => {
    const byte = character.charCodeAt(0) - escapeBase
    return byte < 0xa0 ? '\ufffd' : String.fromCharCode(byte)
  })

function decodeEscaping(bytes: Buffer): string {
  const parts: string[] = []
  let start = 0
  let at = 0
  while (at < bytes.length) {
    const length = sequenceLength(bytes, at)
    if (length > 0) {
      at += length
      continue
    }
    parts.push(
      bytes.toString('utf8', start, at),
      String.fromCharCode(escapeBase + (bytes[at] ?? 0)),
    )
    at++
    start = at
  }
  parts.push(bytes.toString('utf8', start))
  return parts.join('')
}

/** Length of the valid UTF-8 sequence at a position; 0 when none starts there. */
function sequenceLength(bytes: Buffer, at: number): number {
  const lead = bytes[at] ?? 0
  if (lead < 0x80) return 1
  const length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4
  return isUtf8(bytes.subarray(at, at + length)) ? length : 0
}

function encodeEscaped(text: string): Buffer {
  const parts: Buffer[] = []
  let start = 0
  for (const match of text.matchAll(/[\uDC80-\uDCFF]/gu)) {
    parts.push(Buffer.from(text.slice(start, match.index), 'utf8'))
    parts.push(Buffer.of(match[0].charCodeAt(0) - escapeBase))
    start = match.index + 1
  }
  parts.push(Buffer.from(text.slice(start), 'utf8'))
  return Buffer.concat(parts)
}

/**
 * Returns a flat copy of a text that outlives the message from which it was cut. V8 represents a
 * part of a string as a view that keeps the whole string alive, and a sum as a tree of its parts.
 * Reading a character near the end of a sum makes V8 flatten it; what is left is one string. Costs
 * about 50 ns; without it an ended call held 12 kB instead of 4 (`npm run bench -- memory`).
 */
export const detachString = (text: string): string =>
  text.length < longEnough ? text : flattened(text.charAt(0) + text.slice(1))

/** A sum of texts as one piece, which outlives its parts and is quicker to read. */
export function flattened(sum: string): string {
  // Stored, or the compiler would leave the reading out.
  lastRead.code = sum.charCodeAt(sum.length - 1)
  return sum
}

const lastRead = { code: 0 }

/** Shorter parts are copied by V8 itself. */
const longEnough = 13

// Messages as an application writes them: a start line, few headers, a body.

/** Values by name, in any spelling. */
type HeaderValues = Readonly<Record<string, string | undefined>>

class ComposedMessage {
  readonly kind: 'request' | 'response'
  readonly method: string
  readonly uri: string
  readonly status: number
  readonly reason: string
  readonly body: string
  readonly #headers: HeaderValues

  constructor(
    kind: 'request' | 'response',
    [method, uri]: readonly [string, string],
    [status, reason]: readonly [number, string],
    headers: HeaderValues,
    body: string,
  ) {
    this.kind = kind
    this.method = method
    this.uri = uri
    this.status = status
    this.reason = reason
    this.body = body
    this.#headers = headers
  }

  forEach(visit: (name: string, value: string) => void): void {
    for (const name in this.#headers) {
      const value = this.#headers[name]
      if (value !== undefined) visit(knownName(name) ?? name, value)
    }
  }

  get(name: string): string | undefined {
    const wanted = knownName(name) ?? name
    for (const own in this.#headers)
      if ((knownName(own) ?? own) === wanted && this.#headers[own] !== undefined)
        return this.#headers[own]
    return undefined
  }

  has(name: string): boolean {
    return this.get(name) !== undefined
  }

  /** Every element of a comma-list header. */
  list(name: string): readonly string[] {
    const value = this.get(name)
    return value === undefined ? [] : splitList(value)
  }
}

export const composeRequest = (
  method: string,
  uri: string,
  headers: HeaderValues,
  body = '',
): ComposedMessage => new ComposedMessage('request', [method, uri], [0, ''], headers, body)

/** `reason` empty: the usual one. */
export const composeResponse = (
  status: number,
  reason: string,
  headers: HeaderValues,
  body = '',
): ComposedMessage => new ComposedMessage('response', ['', ''], [status, reason], headers, body)

/**
 * Header values and URIs as this side writes them, and replacements inside values that it passes
 * on.
 */

/** RFC 3323 §4.1.1.3: the host of a From that does not say who calls. */
export const ANONYMOUS_HOST = 'anonymous.invalid'

/**
 * A display name and a URI as a header value; the name is quoted so that it cannot end its quotes.
 */
export const formatNameAddr = (displayName: string, uri: string): string =>
  displayName === '' ? `<${uri}>` : `"${displayName.replace(/["\\]/g, '\\$&')}" <${uri}>`

/**
 * A text as the user part of a SIP URI: what may not stand there is escaped (RFC 3261 §25.1),
 * escapes that it has are kept.
 */
export function escapeUser(text: string): string {
  if (/^[\w\-.!~*'()&=+$,;?/%]*$/.test(text)) return text
  if (/^\+?[\d*#]+$/.test(text)) return text.replaceAll('#', '%23')
  // Half a character, where a number was cut: it has no UTF-8, and would be an exception.
  return encodeURIComponent(text.replace(/\p{Surrogate}/gu, '\ufffd'))
}

/**
 * A URI as From or To: parameters say how to get there, which has no place in them (RFC 3261
 * §19.1.1).
 */
export function withoutUriParams(uri: string): string {
  const parameters = uri.startsWith('tel:') ? -1 : uri.indexOf(';', uri.indexOf('@') + 1)
  return parameters === -1 ? uri : uri.slice(0, parameters)
}

/**
 * A header value with another user part in each URI in angle brackets, and in one that begins it.
 */
export const replaceUsers = (value: string, replace: (user: string) => string): string =>
  value
    .replace(inSip, (_all, scheme: string, user: string) => scheme + replace(user))
    .replace(inTel, (_all, scheme: string, user: string) => scheme + replace(user))

/** A user ends at the next `<`: without that, a header full of `<sip:` took seconds. */
const inSip = /((?:<|^)sips?:)([^@<>]*)(?=@)/gi
const inTel = /((?:<|^)tel:)([^;>]*)/gi

/** A header value with another host and port behind each `@` outside quoted strings. */
export function replaceHosts(value: string, ownHost: string): string {
  let replaced = ''
  let from = 0
  let isQuoted = false
  for (let index = 0; index < value.length; index++) {
    const character = value[index]
    if (character === '\\' && isQuoted) index++
    else if (character === '"') isQuoted = !isQuoted
    else if (character === '@' && !isQuoted) {
      replaced += value.slice(from, index + 1) + ownHost
      from = endOfHost(value, index + 1)
      index = from - 1
    }
  }
  return from === 0 ? value : replaced + value.slice(from)
}

function endOfHost(value: string, start: number): number {
  let index = start
  while (index < value.length && !';>?, \t\r"'.includes(value.charAt(index))) index++
  return index
}

// Default reason phrases: RFC 3261 §21 and the later responses of IANA's registry.

const phrases: Readonly<Record<number, string>> = {
  ...statuses,
  // The RFCs and the registry write them so.
  181: 'Call Is Being Forwarded',
  183: 'Session Progress',
  436: 'Bad Identity Info',
  437: 'Unsupported Credential',
  481: 'Call/Transaction Does Not Exist',
  504: 'Server Time-out',
  // Later than that package.
  425: 'Bad Alert Message',
  440: 'Max-Breadth Exceeded',
  469: 'Bad Info Package',
  555: 'Push Notification Service Not Supported',
  607: 'Unwanted',
  608: 'Rejected',
}

export const isKnownStatus = (status: number): boolean => phrases[status] !== undefined

/** Phrase for a status; an unregistered one reads as the x00 of its class (RFC 3261 §8.1.3.2). */
export const reasonPhrase = (status: number): string =>
  phrases[status] ?? phrases[Math.floor(status / 100) * 100] ?? 'Unknown'
