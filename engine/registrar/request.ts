/** What the registrar reads of a SIP request besides contacts. Pure. */
import { numberOrText } from '../../schema/rules/phone-number.ts'

/** By name in any spelling; names that a stack knows usually come in small letters. */
export type RequestHeaders = Readonly<Record<string, string | undefined>>

export function headerOf(headers: RequestHeaders, name: string): string | undefined {
  const value = headers[name]
  if (value !== undefined) return value
  for (const key in headers) if (key.toLowerCase() === name) return headers[key]
  return undefined
}

const optionsOf = (header: string | undefined): readonly string[] =>
  (header ?? '')
    .split(',')
    .map((option) => option.trim())
    .filter((option) => option !== '')

export const hasOption = (headers: RequestHeaders, name: string, wanted: string): boolean =>
  optionsOf(headerOf(headers, name)).some((option) => option.toLowerCase() === wanted)

/** What we support of a REGISTER's `Require`: nothing but RFC 3327. */
export const unsupportedOptions = (require: string | undefined): string =>
  optionsOf(require)
    .filter((option) => option.toLowerCase() !== 'path')
    .join(', ')

/** Whom a From or To header names. */
export interface Identity {
  /** User part without parameters, `%` escapes resolved. */
  readonly user: string
  /** Small letters, without port; fit to stand in quotes. */
  readonly domain: string
}

/** Undefined: no user at a domain. */
export function identityOf(value: string | undefined): Identity | undefined {
  const match =
    /^(?:"(?:[^"\\]|\\.)*"\s*|[^"<>]*)<?sips?:([^\s@<>"]{1,128})@(\[[\da-f:.]{2,45}\]|[\w.-]{1,255})(?=[:;?>\s]|$)/i.exec(
      value ?? '',
    )
  const [, userInfo, host] = match ?? []
  if (userInfo === undefined || host === undefined) return undefined
  const [escaped = ''] = userInfo.split(/[;:]/, 1)
  const user = unescaped(escaped)
  return user === undefined ? undefined : { user, domain: host.toLowerCase() }
}

/** Who calls: a number in its normal form, because calls are charged by that. */
export function callerIn(value: string | undefined): Identity | undefined {
  const identity = identityOf(value)
  return identity && { ...identity, user: numberOrText(identity.user) }
}

/** Whom a request says that it comes from. RFC 3325 §6: a phone that hides its number tells only its own server. */
export function claimedBy(headers: RequestHeaders): Identity | undefined {
  const claimed = callerIn(headerOf(headers, 'from'))
  return claimed?.domain === 'anonymous.invalid'
    ? callerIn(headerOf(headers, 'p-preferred-identity'))
    : claimed
}

function unescaped(text: string): string | undefined {
  if (!text.includes('%')) return text
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}
