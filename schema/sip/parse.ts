import {
  byteLength,
  decodeMessage,
  encodeMessage,
  escapedAsLatin1,
  hasEscapedBytes,
  type HeaderIndex,
  type HeaderLine,
  SipMessage,
  type StartLine,
  type Protocol,
} from './message.ts'
import { isBlank, isToken, knownNameAt, skipBlanks, type Params, splitOutside } from './headers.ts'
import {
  isPlainAddress,
  parseContentLength,
  type NameAddr,
  parseNameAddr,
  parseRAck,
  parseVia,
  type Via,
} from './fields.ts'
import { maxMessageBytes } from './stream-framer.ts'

/** A text that is no SIP message, with the answer that it deserves. */
export interface MalformedMessage {
  readonly kind: 'malformed'
  readonly status: number
  readonly reason: string
  /**
   * Enough to answer by. `undefined`: a response, an ACK, or nothing that an answer could follow.
   */
  readonly message: SipMessage | undefined
}

/**
 * Reads one whole message (RFC 3261 §7). Line breaks before it and octets after its Content-Length
 * are cut off (§7.5, §18.3). MalformedMessage is only what prevents reading.
 */
export function parseMessage(received: string): SipMessage | MalformedMessage {
  const text = withoutLeadingBreaks(received)
  const startEnd = endOfLine(text, 0)
  const line = text.slice(0, startEnd)
  const start = parseStartLine(line)
  const index = indexHeaders(text, startEnd)
  if (start === undefined) return malformed(text, line, index, 'Bad Request Line')
  const unified = index.flaw === undefined ? undefined : withCarriageReturns(text)
  if (unified !== undefined) return parseMessage(unified)
  if (index.flaw !== undefined) return malformed(text, line, index, index.flaw)
  const message = new SipMessage(text, start, index)
  if (hasEscapedBytes(text) && hasEscapedBytes(text.slice(0, index.bodyStart))) {
    if (isRoutedByEscapedBytes(message)) return malformed(text, line, index, 'Header Is Not UTF-8')
    return parseMessage(escapedAsLatin1(text.slice(0, index.bodyStart)) + message.body)
  }
  return withoutExtraOctets(message, start, index)
}

/**
 * Some senders end every line with a bare line feed, which drachtio-server and others take. Nothing
 * of that passes on: from here on the lines end as they should. One that ends only some lines so
 * may hide a header from who reads strictly on the way to us: that stays malformed. `undefined`:
 * not such a text.
 */
function withCarriageReturns(text: string): string | undefined {
  const end = text.indexOf('\n\n')
  const head = text.slice(0, Math.max(0, end))
  if (head === '' || head.includes('\r')) return undefined
  return `${head.replaceAll('\n', '\r\n')}\r\n\r\n${text.slice(end + 2)}`
}

/** Whether the lines of a received message end with bare line feeds. */
export function endsLinesWithLineFeeds(received: string): boolean {
  const at = received.indexOf('\n')
  return at > 0 && received.charCodeAt(at - 1) !== carriageReturn
}

/**
 * RFC 3261 §8.2.2: what is wrong in a header that is not needed is no reason to refuse the message.
 * Many write a display name, a Subject, a Server or a reason phrase in Latin-1. What has to come
 * back to them byte for byte is another matter.
 */
function isRoutedByEscapedBytes(message: SipMessage): boolean {
  const { uri } = message
  return hasEscapedBytes(uri) || comesBack.some((name) => message.all(name).some(hasEscapedBytes))
}

const comesBack = ['Via', 'Call-ID', 'CSeq', 'Contact', 'Route', 'Record-Route']

/**
 * Reads what a drachtio application sends: few headers, any spelling, bare line feeds, no blank
 * line at the end of a message without body; its Content-Length is no measure, and a line that is
 * no header is left out. `undefined`: no start line.
 */
export function parseAppMessage(received: string): SipMessage | undefined {
  const text = withoutLeadingBreaks(received)
  const startEnd = endOfLine(text, 0)
  const start = parseStartLine(text.slice(0, startEnd).trim())
  return start && new SipMessage(text, start, indexHeaders(text, startEnd))
}

function withoutLeadingBreaks(text: string): string {
  let from = 0
  while (text.charCodeAt(from) === carriageReturn || text.charCodeAt(from) === lineFeed) from++
  return from === 0 ? text : text.slice(from)
}

const carriageReturn = 0x0d
const lineFeed = 0x0a

function endOfLine(text: string, from: number): number {
  const end = text.indexOf('\n', from)
  if (end === -1) return text.length
  return end > from && text.charCodeAt(end - 1) === carriageReturn ? end - 1 : end
}

/**
 * RFC 3261 §7.1, §7.2: exactly one space between the parts; only the reason phrase may hold more.
 */
function parseStartLine(line: string): StartLine | undefined {
  if (/^SIP\//i.test(line)) return parseStatusLine(line)
  const methodEnd = line.indexOf(' ')
  const uriEnd = line.indexOf(' ', methodEnd + 1)
  if (methodEnd < 1 || uriEnd <= methodEnd + 1) return undefined
  const method = line.slice(0, methodEnd)
  const version = line.slice(uriEnd + 1)
  if (!isToken(method) || (version !== 'SIP/2.0' && !versions.test(version))) return undefined
  const uri = line.slice(methodEnd + 1, uriEnd)
  return { kind: 'request', method, uri, version, status: 0, reason: '' }
}

const versions = /^SIP\/\d{1,5}\.\d{1,5}$/i
const statusLine = /^SIP\/\d{1,5}\.\d{1,5} [1-6]\d\d(?: [^\r\n]*)?$/i

function parseStatusLine(line: string): StartLine | undefined {
  if (!statusLine.test(line)) return undefined
  const space = line.indexOf(' ')
  return {
    kind: 'response',
    method: '',
    uri: '',
    version: line.slice(0, space),
    status: Number(line.slice(space + 1, space + 4)),
    reason: line.slice(space + 5),
  }
}

interface IndexedHeaders extends HeaderIndex {
  /** Why this is no header part; what cannot be read is not in the index. */
  readonly flaw: string | undefined
}

/** One pass over the header lines: what each header is called, and where its value stands. */
function indexHeaders(text: string, startEnd: number): IndexedHeaders {
  const lines: HeaderLine[] = []
  let flaw = text.charCodeAt(startEnd) === lineFeed ? 'Bad Line Break' : undefined
  let hasPlainHeaders = flaw === undefined
  let colon = -1
  let carriage = -1
  let line: HeaderLine | undefined
  let at = Math.min(nextOrEnd(text, '\n', startEnd) + 1, text.length)
  while (at < text.length) {
    const lineBreak = nextOrEnd(text, '\n', at)
    const next = Math.min(lineBreak + 1, text.length)
    if (carriage < at) carriage = nextOrEnd(text, '\r', at)
    const end = Math.min(carriage, lineBreak)
    const isOneLine = lineBreak - end < 2
    if (end !== lineBreak - 1 && next > lineBreak) flaw ??= 'Bad Line Break'
    if (end === at && isOneLine)
      return {
        lines,
        bodyStart: next,
        hasPlainHeaders: hasPlainHeaders && flaw === undefined,
        flaw,
      }
    if (colon < at) colon = nextOrEnd(text, ':', at)
    const read = isOneLine ? readLine(line, text, at, colon, end) : undefined
    if (read === undefined) flaw ??= 'Bad Header Line'
    else if (read !== line) lines.push(read)
    if (read === line || colon - at < 2) hasPlainHeaders = false
    line = read
    at = next
  }
  flaw ??= 'No Blank Line After Headers'
  return { lines, bodyStart: at, hasPlainHeaders: false, flaw }
}

function nextOrEnd(text: string, wanted: string, from: number): number {
  const at = text.indexOf(wanted, from)
  return at === -1 ? text.length : at
}

/** The header that a line begins, or the one before it that it continues (RFC 3261 §7.3.1). */
function readLine(
  previous: HeaderLine | undefined,
  text: string,
  at: number,
  colon: number,
  end: number,
): HeaderLine | undefined {
  if (!isBlank(text.charCodeAt(at)))
    return colon < end ? headerLine(text, at, colon, end) : undefined
  if (previous === undefined) return undefined
  previous.valueEnd = trimmedEnd(text, previous.valueStart, end)
  return previous
}

/** Blanks may stand before and after the colon (RFC 3261 §7.3.1). */
function headerLine(text: string, at: number, colon: number, end: number): HeaderLine | undefined {
  let nameEnd = colon
  while (nameEnd > at && isBlank(text.charCodeAt(nameEnd - 1))) nameEnd--
  const known = knownNameAt(text, at, nameEnd)
  const name = known ?? text.slice(at, nameEnd)
  if (known === undefined && !isToken(name)) return undefined
  const valueStart = Math.min(skipBlanks(text, colon + 1), end)
  return {
    name,
    valueStart,
    valueEnd: trimmedEnd(text, valueStart, end),
  }
}

function trimmedEnd(text: string, from: number, to: number): number {
  let end = to
  while (end > from && isBlank(text.charCodeAt(end - 1))) end--
  return end
}

/** RFC 3261 §18.3: what follows the body in a datagram is no part of the message. */
function withoutExtraOctets(message: SipMessage, start: StartLine, index: HeaderIndex): SipMessage {
  const value = message.get('Content-Length')
  const length = value === undefined ? undefined : parseContentLength(value)
  const body = message.body
  if (length === undefined || length >= byteLength(body)) return message
  const shortened = decodeMessage(encodeMessage(body).subarray(0, length))
  return new SipMessage(message.text.slice(0, index.bodyStart) + shortened, start, index)
}

/**
 * An answer needs a Via to follow; a response and an ACK are never answered (RFC 3261 §8.1.3, §17).
 */
function malformed(text: string, line: string, index: HeaderIndex, flaw: string): MalformedMessage {
  const isResponse = /^SIP\//i.test(line)
  const [, method = '', uri = ''] = /^([^ ]*) *([^ ]*)/.exec(line) ?? []
  const start = { kind: 'request', method, uri, version: '', status: 0, reason: '' } as const
  const message = new SipMessage(text, start, index)
  const isAnswerable = !isResponse && method !== 'ACK' && message.has('Via')
  return {
    kind: 'malformed',
    status: 400,
    reason: flaw,
    message: isAnswerable ? message : undefined,
  }
}

// Faults of readable messages, and the answers to faulty requests. Only fields that the stack
// itself acts on are checked: a malformed Date or Subject is no reason to refuse a call (RFC 3261
// §8.2.2, §16.3). A 405, 415, 420 or 483 is the answer of the layers above.

interface Refusal {
  readonly status: number
  readonly reason: string
}

/**
 * The answer to a request that must not be processed; `undefined` when it may. An ACK is judged
 * too: the caller drops it instead of answering.
 */
export function checkRequest(message: SipMessage, protocol: Protocol): Refusal | undefined {
  if (!isVersion2(message)) return { status: 505, reason: 'Version Not Supported' }
  const flaw =
    flawInCounts(message) ??
    flawInIdentity(message) ??
    flawInAddresses(message) ??
    flawInLength(message, protocol) ??
    flawOfMethod(message)
  if (flaw === undefined) return checkRequestUri(message)
  // §21.4.11; a stream hands over the header part alone.
  return isTooLarge(message)
    ? { status: 413, reason: 'Request Entity Too Large' }
    : { status: 400, reason: flaw }
}

/** Whether a response may be processed; one that may not is dropped (RFC 3261 §8.1.3, §18.1.2). */
export function checkResponse(message: SipMessage): boolean {
  if (!isVersion2(message)) return false
  const flaw = flawInCounts(message) ?? flawInIdentity(message) ?? flawInLength(message, 'udp')
  return flaw === undefined
}

const isVersion2 = ({ version }: SipMessage): boolean =>
  version === 'SIP/2.0' || version.toUpperCase() === 'SIP/2.0'

/** RFC 3261 §8.1.1; Max-Forwards is not among them because RFC 2543 did not know it. */
const mandatory = ['Via', 'From', 'To', 'Call-ID', 'CSeq'] as const

/** Headers that the stack reads and that may stand only once (RFC 3261 §7.3.1, §20). */
const single =
  'From To Call-ID CSeq Max-Forwards Content-Length Content-Type Expires Min-Expires ' +
  'Session-Expires Min-SE RSeq RAck Event Subscription-State Refer-To Replaces'

/** Via and those have a bit each. */
const bits = new Map(['Via', ...single.split(' ')].map((name, index) => [name, 1 << index]))
const viaBit = 1
const allMandatory = mandatory.reduce((all, name) => all | (bits.get(name) ?? 0), 0)

function flawInCounts(message: SipMessage): string | undefined {
  let seen = 0
  for (const { name } of message.lines) {
    const bit = bits.get(name)
    if (bit === undefined) continue
    if ((seen & bit & ~viaBit) !== 0) return `Multiple ${name} Headers`
    seen |= bit
  }
  if ((seen & allMandatory) === allMandatory) return undefined
  const absent = mandatory.find((name) => !message.has(name))
  return absent && missing(absent)
}

/** Header fields that name the transaction and the dialog. */
function flawInIdentity(message: SipMessage): string | undefined {
  const { via, cseq, callId } = message
  if (!isUsable(via) || hasEmptyPart(message.get('Via') ?? '', via)) return bad('Via')
  if (!/^[^\0- \x7f]+$/.test(callId)) return bad('Call-ID')
  if (cseq === undefined) return bad('CSeq')
  if (cseq.method !== message.method) return 'CSeq Method Mismatch'
  if (!isGood(message, 'From')) return bad('From')
  if (!isGood(message, 'To')) return bad('To')
  return undefined
}

/** RFC 4475 §3.2.1: the magic cookie without anything behind it identifies no transaction. */
const isUsable = (via: Via | undefined): via is Via => via !== undefined && via.branch !== 'z9hG4bK'

const addressOf = {
  From: (message: SipMessage) => message.from,
  To: (message: SipMessage) => message.to,
  Contact: (message: SipMessage) => message.contact,
}

/** Whether the first header of this name has a readable address. */
function isGood(message: SipMessage, name: keyof typeof addressOf): boolean {
  const value = message.get(name)
  if (value === undefined) return false
  if (isPlainAddress(value)) return true
  const address = addressOf[name](message)
  return isAddress(address) && !hasEmptyPart(value, address)
}

/** Any scheme will do (RFC 4475 §3.3.4), but a SIP URI has to be one. */
const isAddress = (address: NameAddr | undefined): address is NameAddr =>
  address !== undefined && (address.parsedUri !== undefined || !/^sips?:/i.test(address.uri))

/**
 * `;;`, `,,` and separators at the end: RFC 4475 §3.1.2.1. `first` is the first element, as it was
 * read.
 */
function hasEmptyPart(value: string, first: { readonly params: Params } | undefined): boolean {
  if (first !== undefined && !value.includes(',')) return first.params.hasEmpty
  return splitOutside(value, ',').some(
    (element) => element === '' || splitOutside(element, ';').includes(''),
  )
}

/** Header fields that the stack sends to, or routes by. */
function flawInAddresses(message: SipMessage): string | undefined {
  if (!areVias(message)) return bad('Via')
  if (!areContacts(message)) return bad('Contact')
  if (!areAddresses(message.all('Route'))) return bad('Route')
  if (!areAddresses(message.all('Record-Route'))) return bad('Record-Route')
  if (message.has('Max-Forwards') && message.maxForwards === undefined) return bad('Max-Forwards')
  return undefined
}

/** The Vias below the topmost. */
function areVias(message: SipMessage): boolean {
  return message.list('Via').every((via, index) => index === 0 || parseVia(via) !== undefined)
}

/** `*` removes bindings and means something only there (RFC 3261 §10.2.2). */
function areContacts(message: SipMessage): boolean {
  const values = message.all('Contact')
  const [first] = values
  if (first === undefined) return true
  if (first === '*' && message.method === 'REGISTER') return true
  if (values.length === 1 && !first.includes(',')) return isGood(message, 'Contact')
  return areAddresses(values)
}

const areAddresses = (values: readonly string[]): boolean =>
  values.every((value) => {
    const elements = splitOutside(value, ',').map((element) => parseNameAddr(element))
    return elements.every(isAddress) && !hasEmptyPart(value, elements[0])
  })

/**
 * RFC 3261 §18.3: a datagram may leave Content-Length out, as may a WebSocket frame (RFC 7118 §5);
 * a stream may not. Octets too many are cut off by the parser, octets too few cannot be made up
 * for.
 */
function flawInLength(message: SipMessage, protocol: Protocol): string | undefined {
  const value = message.get('Content-Length')
  const isStream = protocol === 'tcp' || protocol === 'tls'
  if (value === undefined) return isStream ? missing('Content-Length') : undefined
  const length = parseContentLength(value)
  if (length === undefined || length > byteLength(message.body)) return bad('Content-Length')
  return undefined
}

const isTooLarge = (message: SipMessage): boolean =>
  (parseContentLength(message.get('Content-Length') ?? '') ?? 0) > maxMessageBytes

/**
 * Headers without which a method means nothing: RFC 3262 §7.2, 3515 §2.1, 6665 §8.2.1, 3261 §20.15.
 */
const needed: ReadonlyMap<string, string> = new Map([
  ['PRACK', 'RAck'],
  ['REFER', 'Refer-To'],
  ['SUBSCRIBE', 'Event'],
  ['NOTIFY', 'Event'],
])

function flawOfMethod(message: SipMessage): string | undefined {
  const name = needed.get(message.method)
  if (name !== undefined && !message.has(name)) return missing(name)
  if (message.method === 'PRACK' && parseRAck(message.get('RAck') ?? '') === undefined)
    return bad('RAck')
  if (message.hasBody && !message.has('Content-Type')) return missing('Content-Type')
  return undefined
}

/** RFC 3261 §8.2.2.1; RFC 4475 §3.1.2.7, §3.1.2.11: neither brackets nor headers belong there. */
function checkRequestUri({ uri: text, requestUri: uri }: SipMessage): Refusal | undefined {
  if (uri !== undefined && uri.headers.length === 0) return undefined
  const scheme = /^([A-Za-z][\w+.-]*):/.exec(text)?.[1]?.toLowerCase()
  if (scheme === undefined) return { status: 400, reason: 'Bad Request-URI' }
  // RFC 5031: a service, such as help in an emergency; which place serves it the application knows.
  if (/^urn:service:[a-z][a-z\d.-]*$/i.test(text)) return undefined
  if (scheme !== 'sip' && scheme !== 'sips' && scheme !== 'tel')
    return { status: 416, reason: 'Unsupported URI Scheme' }
  return { status: 400, reason: 'Bad Request-URI' }
}

const bad = (name: string): string => `Bad ${name} Header`
const missing = (name: string): string => `Missing ${name} Header`
