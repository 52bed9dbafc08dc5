/** What the registrar reads of a SIP request besides contacts. Pure. */
import { numberOrText } from '../../schema/rules/numbers.ts'
import {
  ANONYMOUS_HOST,
  bracketed,
  headerNamed,
  parseOptionTags,
  parseUri,
  readAddress,
  splitList,
  unescapeText,
} from '../sip-server/message/index.ts'

/** By name in any spelling; names that a stack knows usually come in small letters. */
export type RequestHeaders = Readonly<Record<string, string | undefined>>

export const hasOption = (headers: RequestHeaders, name: string, wanted: string): boolean =>
  parseOptionTags([headerNamed(headers, name) ?? '']).includes(wanted)

/** What we support of a REGISTER's `Require`: nothing but RFC 3327. */
export const unsupportedOptions = (require: string | undefined): string =>
  splitList(require ?? '')
    .filter((option) => option.toLowerCase() !== 'path')
    .join(', ')

/** The user and domain of a From or To header. */
export interface Identity {
  /** User part without parameters, `%` escapes resolved. */
  readonly user: string
  /** Small letters, without port; fit to stand in quotes. */
  readonly domain: string
}

/** Undefined: no user at a domain. */
export function identityOf(value: string | undefined): Identity | undefined {
  const uri = value === undefined ? undefined : parseUri(readAddress(value).uri)
  if (uri === undefined || uri.user === '' || uri.host === '') return undefined
  if (uri.user.length > MAX_USER || uri.host.length > MAX_HOST) return undefined
  const [escaped = ''] = uri.user.split(';', 1)
  const user = unescapeText(escaped)
  return user === undefined ? undefined : { user, domain: bracketed(uri.host.toLowerCase()) }
}

const MAX_USER = 128
const MAX_HOST = 255

/** Who calls: a number in its normal form, because calls are charged by that. */
export function callerIn(value: string | undefined): Identity | undefined {
  const identity = identityOf(value)
  return identity && { ...identity, user: numberOrText(identity.user) }
}

/** The identity that a request claims. RFC 3325 §6: a phone that hides its number tells only its own server. */
export function claimedBy(headers: RequestHeaders): Identity | undefined {
  const claimed = callerIn(headerNamed(headers, 'from'))
  return claimed?.domain === ANONYMOUS_HOST
    ? callerIn(headerNamed(headers, 'p-preferred-identity'))
    : claimed
}
