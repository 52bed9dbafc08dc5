/** Messages as an application writes them: a start line, few headers, a body. */
import { knownName, splitList } from './headers.ts'

/** Values by name, in any spelling. */
export type HeaderValues = Readonly<Record<string, string | undefined>>

class ComposedMessage {
  readonly kind: 'request' | 'response'
  readonly method: string
  readonly uri: string
  readonly status: number
  readonly reason: string
  readonly body: string
  readonly #entries: (readonly [name: string, value: string])[] = []

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
    for (const name in headers) {
      const value = headers[name]
      if (value !== undefined) this.#entries.push([knownName(name) ?? name, value])
    }
  }

  entries(): readonly (readonly [name: string, value: string])[] {
    return this.#entries
  }

  get(name: string): string | undefined {
    const wanted = knownName(name) ?? name
    return this.#entries.find(([own]) => own === wanted)?.[1]
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

/** Header values and URIs as this side writes them, and replacements inside values that it passes on. */

/** RFC 3323 §4.1.1.3: the host of a From that does not say who calls. */
export const ANONYMOUS_HOST = 'anonymous.invalid'

/** A display name and a URI as a header value; the name is quoted so that it cannot end its quotes. */
export const formatNameAddr = (displayName: string, uri: string): string =>
  displayName === '' ? `<${uri}>` : `"${displayName.replace(/["\\]/g, '\\$&')}" <${uri}>`

/**
 * A text as the user part of a SIP URI: what may not stand there is escaped (RFC 3261 §25.1), escapes that
 * it has are kept.
 */
export function escapeUser(text: string): string {
  if (/^[\w\-.!~*'()&=+$,;?/%]*$/.test(text)) return text
  if (/^\+?[\d*#]+$/.test(text)) return text.replaceAll('#', '%23')
  // Half a character, where a number was cut: it has no UTF-8, and would be an exception.
  return encodeURIComponent(text.replace(/\p{Surrogate}/gu, '\ufffd'))
}

/** A URI as From or To: parameters say how to get there, which has no place in them (RFC 3261 §19.1.1). */
export function withoutUriParams(uri: string): string {
  const parameters = uri.startsWith('tel:') ? -1 : uri.indexOf(';', uri.indexOf('@') + 1)
  return parameters === -1 ? uri : uri.slice(0, parameters)
}

/** A header value with another user part in each URI in angle brackets, and in one that begins it. */
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
