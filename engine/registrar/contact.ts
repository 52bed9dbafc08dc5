/** Contact headers of a REGISTER: RFC 3261 §20.10, and when two of them are one (§19.1.4). Pure. */
import {
  isNoHost,
  parseNameAddr,
  parseUri,
  qValueOf,
  sameUri,
  splitList,
  type Uri,
} from '../../schema/sip/index.ts'
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

/** More in one request are not read: no extension may have as many. */
const MAX_CONTACTS = 32
const MAX_URI = 512

export function contactsOf(header: string | undefined): Contacts {
  const value = header?.trim() ?? ''
  if (value === '') return { kind: 'none' }
  if (value === '*') return { kind: 'all' }
  const contacts: Contact[] = []
  for (const element of splitList(value)) {
    const contact = recentContacts.get(element)
    if (contact === undefined || contacts.length === MAX_CONTACTS) return { kind: 'unreadable' }
    contacts.push(contact)
  }
  return { kind: 'list', contacts }
}

/** A phone sends the same Contact at each refresh. */
const recentContacts = new Recent(10_000, readContact)

function readContact(value: string): Contact | undefined {
  const address = parseNameAddr(value)
  if (address === undefined || address.uri.length > MAX_URI) return undefined
  if (contactUri(address.uri) === undefined) return undefined
  const { uri, params } = address
  const expires = params.get('expires') ?? ''
  const regId = params.get('reg-id') ?? ''
  return {
    uri,
    q: qValueOf(address),
    expiresSeconds: /^\d{1,10}$/.test(expires) ? Number(expires) : undefined,
    instance: params.get('+sip.instance')?.slice(0, MAX_URI) ?? null,
    regId: /^\d{1,9}$/.test(regId) ? Number(regId) : null,
  }
}

/** Undefined: no SIP URI, one that could not stand in a request line, or one of no single host. */
export const contactUri = (uri: string): Uri | undefined => recentUris.get(uri)

const recentUris = new Recent(10_000, (text) => {
  const uri = parseUri(text)
  if (uri === undefined || uri.scheme === 'tel' || uri.headers.length > 0) return undefined
  return isNoHost(uri.params.get('maddr') ?? uri.host) ? undefined : uri
})

/** Whether two contacts are equivalent, by RFC 3261 §19.1.4. */
export function isSameUri(one: string, other: string): boolean {
  if (one === other) return true
  const [left, right] = [contactUri(one), contactUri(other)]
  return left !== undefined && right !== undefined && sameUri(left, right)
}
