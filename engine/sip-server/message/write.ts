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
