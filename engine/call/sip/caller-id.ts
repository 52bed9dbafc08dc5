/**
 * Who calls and who is called, out of From, P-Asserted-Identity and the Request-URI. Pure. Reads
 * only as much of a header as the number takes; a value that makes no sense yields an empty
 * number, never an exception.
 */
import { readNumber, readUserPart, type ReadNumber } from '../../../schema/rules/phone-number.ts'

export interface Party {
  /** Unquoted, without line breaks; empty when there is none. */
  readonly name: string
  /** User part of a SIP URI: the number, or what stands in the URI, still escaped; empty when there is none. */
  readonly user: string
  /** Host and port; empty for `tel:`. */
  readonly host: string
  /** The normal form of a number; or else what stands there, unescaped and without parameters. */
  readonly number: string
  /** Why `number` is no number; undefined: it is one, or empty. */
  readonly irregular?: Irregular | undefined
}

/** A user name, or no way to write a number. */
export type Irregular = Exclude<ReadNumber['kind'], 'number'>

/** What is said to a request that calls it. */
export const answerToIrregular = {
  name: { status: 404, reason: 'Not Found' },
  malformed: { status: 484, reason: 'Address Incomplete' },
} as const satisfies Record<Irregular, { status: number; reason: string }>

/** Longer names are cut: they end in records, logs and headers of our own. */
const MAX_NAME = 128

/** RFC 3325 §9.1: the asserted identity is who the network says it is; From is what it claims. */
export function callerOf(asserted: string | undefined, from: string): Party {
  const claimed = partyOf(from)
  if (asserted === undefined) return claimed
  const known = partyOf(asserted)
  return known.number === '' ? claimed : { ...known, name: known.name || claimed.name }
}

/** The first (name-addr or addr-spec) of a From, To or P-Asserted-Identity value. */
export function partyOf(value: string): Party {
  let name = ''
  let start = 0
  if (value.startsWith('"')) {
    start = endOfQuoted(value)
    name = unquote(value.slice(1, start))
    start++
  }
  const open = value.indexOf('<', start)
  const comma = value.indexOf(',', start)
  if (open === -1 || (comma !== -1 && comma < open && name !== '')) {
    const end = value.slice(start).search(/[;,\s]/)
    return { name, ...uriParty(end === -1 ? value.slice(start) : value.slice(start, start + end)) }
  }
  if (name === '') name = value.slice(start, open).trim()
  const close = value.indexOf('>', open)
  const uri = value.slice(open + 1, close === -1 ? undefined : close)
  return { name: cleanName(name), ...uriParty(uri) }
}

/** RFC 3323 §4.1.1.3: the host of a From that does not say who calls. */
export const ANONYMOUS_HOST = 'anonymous.invalid'
export const isAnonymous = ({ host }: Party): boolean => host.toLowerCase() === ANONYMOUS_HOST

/** A URI as From or To: parameters say how to get there, which has no place in them (RFC 3261 §19.1.1). */
export function partyAt(uri: string): string {
  const parameters = uri.startsWith('tel:') ? -1 : uri.indexOf(';', uri.indexOf('@') + 1)
  return `<${parameters === -1 ? uri : uri.slice(0, parameters)}>`
}

/** Whom a Request-URI calls: the user part of `sip:` and `sips:`, the number of `tel:`. */
export function calledOf(uri: string): Party {
  return { name: '', ...uriParty(uri) }
}

/** An identity header with each number in its normal form; names stay as they are. */
export const withPlainNumbers = (value: string): string =>
  value.replace(inSip, plainUser).replace(inTel, plainUser)

/** A user ends at the next `<`: without that, a header full of `<sip:` took seconds. */
const inSip = /(?<scheme>(?:<|^)sips?:)(?<user>[^@<>]*)(?=@)/gi
const inTel = /(?<scheme>(?:<|^)tel:)(?<user>[^;>]*)/gi

function plainUser(all: string, scheme: string, user: string): string {
  const { kind, text } = readUserPart(beforeAny(user, ':'))
  return kind === 'number' ? scheme + userPart(text) : all
}

/** A number as the user part of a SIP URI: what may not stand there is escaped (RFC 3261 §25.1). */
export function userPart(number: string): string {
  if (/^[\w\-.!~*'()&=+$,;?/%]*$/.test(number)) return number
  if (/^\+?[\d*#]+$/.test(number)) return number.replaceAll('#', '%23')
  // Half a character, where a number was cut: it has no UTF-8, and would be an exception.
  return encodeURIComponent(number.replace(/\p{Surrogate}/gu, '\ufffd'))
}

/** A display name and a URI as a header value. */
export function nameAddr(name: string, uri: string): string {
  return name === '' ? `<${uri}>` : `"${name.replace(/["\\]/g, '\\$&')}" <${uri}>`
}

function uriParty(uri: string): Omit<Party, 'name'> {
  const colon = uri.indexOf(':')
  const scheme = uri.slice(0, colon).toLowerCase()
  if (scheme === 'tel') return userParty(uri.slice(colon + 1), '', true)
  if (scheme !== 'sip' && scheme !== 'sips') return { user: '', host: '', number: '' }
  const at = uri.lastIndexOf('@')
  const address = uri.slice((at === -1 ? colon : at) + 1)
  const host = beforeAny(address, ';', '?')
  if (at === -1) return { user: '', host, number: '' }
  // A password is nobody's number, and RFC 3261 §19.1.1 warns of it: it goes no further.
  return userParty(beforeAny(uri.slice(colon + 1, at), ':'), host, isTelephone.test(address))
}

/** RFC 3261 §19.1.1: the user part is a telephone number, whatever it looks like. */
const isTelephone = /;user=phone(?![^;?])/i

/** `mustBeNumber`: a name is no name there, but a number that is written wrong. */
function userParty(user: string, host: string, mustBeNumber: boolean): Omit<Party, 'name'> {
  if (user === '') return { user, host, number: '' }
  const { kind, text } = readUserPart(user)
  if (kind === 'number') return { user: userPart(text), host, number: text }
  const irregular = mustBeNumber ? 'malformed' : kind
  return { user: userPart(user), host, number: text, irregular }
}

/** `party` under the number that a rule of its carrier has made of its own. */
export function renumbered(party: Party, rewritten: string): Party {
  if (rewritten === party.number) return party
  const { kind, text: number } = readNumber(rewritten)
  const irregular = kind === 'number' || number === '' ? undefined : kind
  return { ...party, number, user: userPart(number), irregular }
}

function beforeAny(text: string, ...marks: readonly string[]): string {
  let end = text.length
  for (const mark of marks) {
    const index = text.indexOf(mark)
    if (index !== -1 && index < end) end = index
  }
  return text.slice(0, end)
}

/** Index of the closing quote of a value that begins with one. */
function endOfQuoted(value: string): number {
  let index = 1
  while (index < value.length && value[index] !== '"') index += value[index] === '\\' ? 2 : 1
  return Math.min(index, value.length)
}

const unquote = (text: string): string =>
  cleanName(text.includes('\\') ? text.replace(/\\(.)/g, '$1') : text)

/** Control characters (a folded line, an escaped CR) must reach neither a header nor a log. */
const cleanName = (text: string): string => text.replace(/\p{Cc}+/gu, ' ').slice(0, MAX_NAME)
