/**
 * HTTP digest as SIP uses it: RFC 3261 §22, RFC 7616, RFC 8760. Pure: credentials are read, answers
 * computed and compared; which nonce is good is decided in `authenticator.ts`.
 */
import { hash, timingSafeEqual } from 'node:crypto'
import { endOfQuoted, skipBlanks, unquote } from '../../../schema/sip/index.ts'
import { Recent } from '../recent.ts'

export type Algorithm = 'MD5' | 'SHA-256'

/** The credentials in a header `Authorization` or `Proxy-Authorization` for one realm. */
export interface DigestCredentials {
  readonly username: string
  readonly realm: string
  readonly nonce: string
  readonly uri: string
  /** As sent, small letters. */
  readonly response: string
  /** Undefined: one that we did not offer. */
  readonly algorithm: Algorithm | undefined
  /** Null: without quality of protection, as RFC 2069 clients answer. */
  readonly protection: {
    readonly cnonce: string
    /** Eight hexadecimal digits, as sent; the number is `count`. */
    readonly nc: string
    readonly count: number
  } | null
}

/** Longer headers are not read: no phone needs as much. */
const MAX_HEADER = 4_096

/**
 * The digest credentials for a realm; undefined when the header has none that could be checked.
 * Several headers come as one, joined with commas.
 */
export function credentialsFor(
  realm: string,
  header: string | undefined,
): DigestCredentials | undefined {
  if (header === undefined) return undefined
  for (const fields of digestFields(header)) {
    if (fields.get('realm')?.toLowerCase() !== realm.toLowerCase()) continue
    const credentials = credentialsOf(fields)
    if (credentials) return credentials
  }
  return undefined
}

/**
 * The fields of each `Digest` in a header, by names in small letters: credentials, or challenges.
 */
export function* digestFields(header: string): Generator<ReadonlyMap<string, string>> {
  if (header.length > MAX_HEADER) return
  for (const start of header.matchAll(/(?:^|,)\s*Digest\s+/gi))
    yield fieldsFrom(header, start.index + start[0].length)
}

/** `name=value` pairs up to the end or to the next scheme. */
function fieldsFrom(header: string, start: number): ReadonlyMap<string, string> {
  const fields = new Map<string, string>()
  for (let at = start; at < header.length;) {
    const equals = header.indexOf('=', at)
    const name = header.slice(at, equals).trim().toLowerCase()
    if (equals === -1 || !/^[\w*-]+$/.test(name)) break
    const value = valueAt(header, equals + 1)
    if (value === undefined) break
    if (!fields.has(name)) fields.set(name, value.text)
    at = value.next
  }
  return fields
}

/** A quoted string or a token, and what follows its comma. Undefined: neither. */
function valueAt(
  header: string,
  start: number,
): { readonly text: string; readonly next: number } | undefined {
  const begin = skipBlanks(header, start)
  if (header[begin] !== '"') {
    const comma = header.indexOf(',', begin)
    const end = comma === -1 ? header.length : comma
    const token = header.slice(begin, end).trimEnd()
    return /[\s"]/.test(token) ? undefined : { text: token, next: end + 1 }
  }
  const end = endOfQuoted(header, begin)
  if (end === -1) return undefined
  const next = skipBlanks(header, end)
  if (next < header.length && header[next] !== ',') return undefined
  return { text: unquote(header.slice(begin, end)), next: next + 1 }
}

function credentialsOf(fields: ReadonlyMap<string, string>): DigestCredentials | undefined {
  const get = (name: string): string => fields.get(name) ?? ''
  const protection = protectionOf(fields)
  if (protection === undefined || get('nonce') === '' || get('response') === '') return undefined
  return {
    username: get('username'),
    realm: get('realm'),
    nonce: get('nonce'),
    uri: get('uri'),
    response: get('response').toLowerCase(),
    algorithm: algorithmOf(get('algorithm')),
    protection,
  }
}

function protectionOf(
  fields: ReadonlyMap<string, string>,
): DigestCredentials['protection'] | undefined {
  const qop = fields.get('qop')
  if (qop === undefined) return null
  const nc = fields.get('nc') ?? ''
  const cnonce = fields.get('cnonce') ?? ''
  if (qop.toLowerCase() !== 'auth' || !/^[\da-f]{8}$/i.test(nc) || cnonce === '') return undefined
  return { cnonce, nc, count: Number.parseInt(nc, 16) }
}

/** Undefined: one that we do not know. */
export function algorithmOf(name: string): Algorithm | undefined {
  const upper = name.toUpperCase()
  if (upper === '') return 'MD5'
  return upper === 'MD5' || upper === 'SHA-256' ? upper : undefined
}

/** RFC 7616 §3.4.1: what a client that knows `ha1` answers. Small hexadecimal digits. */
export function expectedResponse(
  credentials: Pick<DigestCredentials, 'nonce' | 'uri' | 'protection'>,
  algorithm: Algorithm,
  method: string,
  ha1: string,
): string {
  const { nonce, uri, protection } = credentials
  const ha2 =
    algorithm === 'MD5' ? knownHa2.get(`${method}:${uri}`) : digest(algorithm, `${method}:${uri}`)
  if (protection === null) return digest(algorithm, `${ha1}:${nonce}:${ha2}`)
  return digest(algorithm, `${ha1}:${nonce}:${protection.nc}:${protection.cnonce}:auth:${ha2}`)
}

/** Small hexadecimal digits. */
export const digest = (algorithm: Algorithm, text: string): string =>
  hash(hashName[algorithm], text, 'hex')

/** Phones of one domain name the same URI again and again. */
const knownHa2 = new Recent(1_000, (text) => hash('md5', text, 'hex'))

const hashName: Readonly<Record<Algorithm, string>> = { MD5: 'md5', 'SHA-256': 'sha256' }

/** Takes the same time wherever the difference is. */
export function isSameResponse(given: string, expected: string): boolean {
  const one = Buffer.from(given)
  const other = Buffer.from(expected)
  return one.length === other.length && timingSafeEqual(one, other)
}

/** One challenge: the value of a `WWW-Authenticate` or `Proxy-Authenticate` header. */
export function challengeValue(
  realm: string,
  nonce: string,
  algorithm: Algorithm,
  isStale: boolean,
): string {
  const stale = isStale ? ', stale=true' : ''
  return `Digest realm="${realm}", nonce="${nonce}", algorithm=${algorithm}, qop="auth"${stale}`
}
