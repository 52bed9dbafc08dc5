/**
 * What can be read of addresses that may break the grammar: identities, diversions and targets come from
 * peers of all kinds, and a strange spelling is no reason to refuse a call. Every function takes one pass
 * over its text and returns a value for any input.
 */
import { endOfQuoted, trimBlanks, unquote } from './headers.ts'

/** Reads the first name-addr or addr-spec of a header value. Parts that cannot be read are ''. */
export function readAddress(value: string): { readonly displayName: string; readonly uri: string } {
  let displayName = ''
  let start = 0
  if (value.startsWith('"')) {
    const end = endOfQuoted(value, 0)
    start = end === -1 ? value.length : end
    displayName = unquote(end === -1 ? `${value}"` : value.slice(0, end))
  }
  const open = value.indexOf('<', start)
  const comma = value.indexOf(',', start)
  if (open === -1 || (comma !== -1 && comma < open && displayName !== '')) {
    const end = value.slice(start).search(/[;,\s]/)
    return { displayName, uri: value.slice(start, end === -1 ? undefined : start + end) }
  }
  if (displayName === '') displayName = value.slice(start, open).trim()
  const close = value.indexOf('>', open)
  return { displayName, uri: value.slice(open + 1, close === -1 ? undefined : close) }
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

/** The parts of a URI as they are written; `parseUri` tells whether it is one. */
export interface ReadUri {
  /** In small letters; '' when absent. */
  readonly scheme: string
  /** The user part without password, escapes kept; of a tel URI the number. '' when absent. */
  readonly user: string
  /** `host[:port]` as written; '' of a tel URI. */
  readonly hostPort: string
  /** From the first `;` behind the address up to the headers. */
  readonly params: string
  /** Behind the `?`, escapes kept. */
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
