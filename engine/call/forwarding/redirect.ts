/**
 * Call forwarding in a phone: the target of its 3xx (RFC 3261 §8.1.3.4), which is dialled with the rights of
 * the extension that was called. Pure.
 */
import { isIP } from 'node:net'
import {
  headerNamed,
  noParams,
  parseNameAddr,
  qValueOf,
  readAddress,
  splitList,
  withoutBrackets,
} from '../../sip-server/message/index.ts'
import { calledOf, domainOf } from '../sip/caller-id.ts'
import type { Headers } from '../signalling.ts'

/** The target of a forward. */
export interface Forwarding {
  /** In the normal form. */
  readonly number: string
  /** The same as user part of a URI. */
  readonly user: string
  /** Without port; empty where the phone names an address, which may be its own. */
  readonly domain: string
  /** By `sips:`. */
  readonly isSecure: boolean
  /** RFC 5806: why. */
  readonly reason: string
}

/** Undefined: it names no number. Of several targets the preferred one is meant. */
export function forwardingOf(headers: Headers): Forwarding | undefined {
  const targets = splitList(headers['contact'] ?? '')
    .slice(0, MAX_TARGETS)
    .map(targetIn)
  const [preferred] = targets.toSorted((a, b) => b.q - a.q)
  const { number, user, host, irregular } = calledOf(preferred?.uri ?? '')
  const name = domainOf({ host })
  const domain = isIP(withoutBrackets(name)) === 0 ? name : ''
  const isSecure = /^sips:/i.test(preferred?.uri ?? '')
  const isNumber = number !== '' && irregular === undefined
  return isNumber ? { number, user, domain, isSecure, reason: reasonOf(headers) } : undefined
}

/** More in one answer are not read. */
const MAX_TARGETS = 16

/** One of a Contact, as `sip:` or `tel:` URI, and how much it is preferred. */
function targetIn(value: string): { readonly uri: string; readonly q: number } {
  return {
    uri: readAddress(value).uri.trim(),
    q: qValueOf(parseNameAddr(value) ?? { params: noParams }),
  }
}

/** RFC 5806 §4: what a phone may give as its reason. */
const reasons = new Set([
  'user-busy',
  'no-answer',
  'unavailable',
  'unconditional',
  'time-of-day',
  'do-not-disturb',
  'deflection',
  'follow-me',
  'out-of-service',
  'away',
])

function reasonOf(headers: Headers): string {
  const given =
    /;\s*reason\s*=\s*"?([\w-]+)/i.exec(headerNamed(headers, 'diversion') ?? '')?.[1] ?? ''
  return reasons.has(given.toLowerCase()) ? given.toLowerCase() : 'unknown'
}

/** With one more Diversion, the latest first (RFC 5806 §4). */
export function divertedBy(extension: string, reason: string, headers: Headers): Headers {
  const before = headerNamed(headers, 'diversion')
  const kept: Headers = {}
  for (const name in headers)
    if (name.toLowerCase() !== 'diversion') kept[name] = headers[name] ?? ''
  const own = `<${extension}>;reason=${reason}`
  return { ...kept, diversion: before === undefined ? own : `${own}, ${before}` }
}
