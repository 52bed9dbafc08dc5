/**
 * What is wrong with a message that can be read, and what a request deserves for it. Only fields that
 * the stack itself acts on are judged: a malformed Date or Subject is no reason to refuse a
 * call (RFC 3261 §8.2.2, §16.3). A 405, 415, 420 or 483 is the answer of the layers above.
 */
import type { Protocol } from '../flow.ts'
import { byteLength } from './decode.ts'
import { type Params, splitOutside } from './headers.ts'
import { type SipMessage } from './message.ts'
import {
  type NameAddr,
  parseContentLength,
  parseNameAddr,
  parseRAck,
  parseVia,
  type Via,
} from './fields.ts'
import { maxMessageBytes } from './stream-framer.ts'

export interface Refusal {
  readonly status: number
  readonly reason: string
}

/**
 * The answer to a request that must not be processed; `undefined` when it may. An ACK is judged too:
 * the caller drops it instead of answering.
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

/** What names the transaction and the dialog. */
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

/** Of the first of its kind. */
function isGood(message: SipMessage, name: keyof typeof addressOf): boolean {
  const value = message.get(name)
  if (value === undefined) return false
  if (plainAddress.test(value)) return true
  const address = addressOf[name](message)
  return isAddress(address) && !hasEmptyPart(value, address)
}

/** What nearly every address is; a value that this pattern takes is one without being taken apart. */
const plainAddress =
  /^(?:"[\w .+-]*" ?)?<sip:(?:[\w.+-]+@)?\w[\w.-]*(?::(?:[1-9]\d{0,3}|[1-5]\d{4}))?(?:;transport=[a-z]+)?>(?:;tag=[\w.-]+)?$/i

/** Any scheme will do (RFC 4475 §3.3.4), but a SIP URI has to be one. */
const isAddress = (address: NameAddr | undefined): address is NameAddr =>
  address !== undefined && (address.parsedUri !== undefined || !/^sips?:/i.test(address.uri))

/** `;;`, `,,` and separators at the end: RFC 4475 §3.1.2.1. `first` is the first element, as it was read. */
function hasEmptyPart(value: string, first: { readonly params: Params } | undefined): boolean {
  if (first !== undefined && !value.includes(',')) return first.params.hasEmpty
  return splitOutside(value, ',').some(
    (element) => element === '' || splitOutside(element, ';').includes(''),
  )
}

/** What the stack would have to send to, or route by. */
function flawInAddresses(message: SipMessage): string | undefined {
  if (!areVias(message)) return bad('Via')
  if (!areContacts(message)) return bad('Contact')
  if (!areAddresses(message.all('Route'))) return bad('Route')
  if (!areAddresses(message.all('Record-Route'))) return bad('Record-Route')
  if (message.has('Max-Forwards') && message.maxForwards === undefined) return bad('Max-Forwards')
  return undefined
}

/** Those below the topmost. */
function areVias(message: SipMessage): boolean {
  const [, ...others] = message.list('Via')
  return others.every((via) => parseVia(via) !== undefined)
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
 * RFC 3261 §18.3: a datagram may leave Content-Length out, as may a WebSocket frame (RFC 7118 §5); a
 * stream may not. Octets too many are cut off by the parser, octets too few cannot be made up for.
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

/** Headers without which a method means nothing: RFC 3262 §7.2, 3515 §2.1, 6665 §8.2.1, 3261 §20.15. */
const needed: Readonly<Record<string, string>> = {
  PRACK: 'RAck',
  REFER: 'Refer-To',
  SUBSCRIBE: 'Event',
  NOTIFY: 'Event',
}

function flawOfMethod(message: SipMessage): string | undefined {
  const name = Object.hasOwn(needed, message.method) ? needed[message.method] : undefined
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
