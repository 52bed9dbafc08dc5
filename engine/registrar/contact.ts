/** Contact headers of a REGISTER: RFC 3261 §20.10, and when two of them are one (§19.1.4). Pure. */
import { Recent } from './recent.ts'

export interface Contact {
  /** The URI as sent, without angle brackets. */
  readonly uri: string
  /** Thousandths: 0 to 1000; 1000 where none is given. */
  readonly q: number
  /** Undefined: none given, or not a number. */
  readonly expiresSeconds: number | undefined
  /** `+sip.instance` (RFC 5626 §4.1), as sent. */
  readonly instance: string | null
  readonly regId: number | null
}

export type Contacts =
  | { readonly kind: 'none' }
  /** `Contact: *` */
  | { readonly kind: 'all' }
  | { readonly kind: 'list'; readonly contacts: readonly Contact[] }
  | { readonly kind: 'unreadable' }

/** More in one request are not read: nobody may have as many. */
const MAX_CONTACTS = 32
const MAX_URI = 512

export function contactsOf(header: string | undefined): Contacts {
  if (header === undefined || header.trim() === '') return { kind: 'none' }
  if (header.trim() === '*') return { kind: 'all' }
  const contacts: Contact[] = []
  for (const value of listItems(header)) {
    const contact = recentContacts.get(value)
    if (contact === undefined || contacts.length === MAX_CONTACTS) return { kind: 'unreadable' }
    contacts.push(contact)
  }
  return { kind: 'list', contacts }
}

/** A phone sends the same Contact at each refresh. */
const recentContacts = new Recent(10_000, readContact)

/** The items of a comma list, commas in quotes and angle brackets apart. */
export function* listItems(value: string): Generator<string> {
  let start = 0
  let isQuoted = false
  let isBracketed = false
  for (let index = 0; index < value.length; index++) {
    const character = value[index]
    if (character === '\\' && isQuoted) index++
    else if (character === '"') isQuoted = !isQuoted
    else if (isQuoted) continue
    else if (character === '<') isBracketed = true
    else if (character === '>') isBracketed = false
    else if (character === ',' && !isBracketed) {
      yield value.slice(start, index).trim()
      start = index + 1
    }
  }
  yield value.slice(start).trim()
}

function readContact(value: string): Contact | undefined {
  const match = /^(?:"(?:[^"\\]|\\.)*"\s*|[^"<>]*)<([^<>]*)>(.*)$/s.exec(value)
  const bare = value.indexOf(';')
  const uri = match?.[1] ?? (bare === -1 ? value : value.slice(0, bare)).trim()
  const params = paramsOf(match?.[2] ?? (bare === -1 ? '' : value.slice(bare)))
  if (uri.length > MAX_URI || partsOf(uri) === undefined) return undefined
  const q = params.get('q') ?? ''
  const expires = params.get('expires') ?? ''
  const regId = params.get('reg-id') ?? ''
  return {
    uri,
    q: /^[01](\.\d{0,3})?$/.test(q) ? Math.min(1_000, Math.round(Number(q) * 1_000)) : 1_000,
    expiresSeconds: /^\d{1,10}$/.test(expires) ? Number(expires) : undefined,
    instance: params.get('+sip.instance')?.slice(0, MAX_URI) ?? null,
    regId: /^\d{1,9}$/.test(regId) ? Number(regId) : null,
  }
}

function paramsOf(text: string): ReadonlyMap<string, string> {
  const params = new Map<string, string>()
  const param = /;\s*([^\s;=]+)\s*(?:=\s*("(?:[^"\\]|\\.)*"|[^\s;]*))?/g
  for (const [, name = '', value = ''] of text.matchAll(param))
    params.set(name.toLowerCase(), value.startsWith('"') ? value.slice(1, -1) : value)
  return params
}

interface UriParts {
  readonly scheme: string
  readonly user: string
  /** Small letters, IPv6 in brackets. */
  readonly host: string
  /** 0: none given. */
  readonly port: number
  readonly params: ReadonlyMap<string, string>
}

/** Undefined: no SIP URI, or one that could not stand in a request line. */
export const partsOf = (uri: string): UriParts | undefined => recentUris.get(uri)

const recentUris = new Recent(10_000, readUri)

function readUri(uri: string): UriParts | undefined {
  const match =
    /^(sips?):(?:([^\s@<>"]*)@)?(\[[\da-f:.]+\]|[\w.-]+)(?::(\d{1,5}))?((?:;[^\s<>"?]*)?)$/i.exec(
      uri,
    )
  if (match === null) return undefined
  const [, scheme = '', user = '', host = '', port = '0', params = ''] = match
  if (Number(port) > 65_535) return undefined
  return {
    scheme: scheme.toLowerCase(),
    user,
    host: host.toLowerCase(),
    port: Number(port),
    params: paramsOf(params.toLowerCase()),
  }
}

/** Parameters that make a difference even where only one of two URIs has them. */
const decisive = ['transport', 'user', 'ttl', 'method', 'maddr']

/** RFC 3261 §19.1.4, except that `%` escapes are not resolved. */
export function isSameUri(one: string, other: string): boolean {
  if (one === other) return true
  const a = partsOf(one)
  const b = partsOf(other)
  if (a === undefined || b === undefined) return false
  if (a.scheme !== b.scheme || a.user !== b.user || a.host !== b.host || a.port !== b.port)
    return false
  if (decisive.some((name) => a.params.get(name) !== b.params.get(name))) return false
  for (const [name, value] of a.params) {
    const counterpart = b.params.get(name)
    if (counterpart !== undefined && counterpart !== value) return false
  }
  return true
}
