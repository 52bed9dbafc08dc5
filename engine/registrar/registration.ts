/** What a REGISTER asks for, and how its answer lists what there is. Pure. */
import type { Binding, Registration, Source } from './bindings.ts'
import { contactsOf } from './contact.ts'
import {
  ANONYMOUS_HOST,
  bracketed,
  headerNamed,
  parseNameAddr,
  parseOptionTags,
  parseUri,
  readAddress,
  splitList,
  unescapeText,
} from '../sip-server/message/index.ts'
import { numberOrText } from '../../schema/rules/numbers.ts'

export function registrationOf(
  headers: RequestHeaders,
  source: Source,
  node: string,
): Registration {
  const expires = headerNamed(headers, 'expires')?.trim() ?? ''
  return {
    contacts: contactsOf(headerNamed(headers, 'contact')),
    expiresSeconds: /^\d{1,10}$/.test(expires) ? Number(expires) : undefined,
    callId: headerNamed(headers, 'call-id') ?? '',
    cseq: Number.parseInt(headerNamed(headers, 'cseq') ?? '0', 10),
    path: pathOf(headerNamed(headers, 'path')),
    knowsPath: hasOption(headers, 'supported', 'path') || hasOption(headers, 'require', 'path'),
    userAgent: (headerNamed(headers, 'user-agent') ?? '').slice(0, MAX_USER_AGENT),
    source,
    node,
  }
}

const MAX_USER_AGENT = 128

/** RFC 3261 §10.3 step 8: all bindings with what is left of them; RFC 3327 §5.3: the Path. */
export function listing(
  bindings: readonly Binding[],
  path: readonly string[],
  now: number,
): Record<string, string> {
  const headers: Record<string, string> = {}
  if (bindings.length > 0)
    headers['Contact'] = bindings.map((binding) => contactValue(binding, now)).join(', ')
  if (path.length > 0) headers['Path'] = path.join(', ')
  return headers
}

function contactValue({ contact, q, instance, regId, expiresAt }: Binding, now: number): string {
  const preference = q === 1_000 ? '' : `;q=${(q / 1_000).toFixed(3).replace(/0+$/, '0')}`
  const phone = instance === null ? '' : `;+sip.instance="${instance}"`
  const flow = regId === null ? '' : `;reg-id=${regId}`
  return `<${contact}>;expires=${Math.ceil((expiresAt - now) / 1_000)}${preference}${phone}${flow}`
}

/** By name in any spelling; names that a stack knows usually come in small letters. */
export type RequestHeaders = Readonly<Record<string, string | undefined>>

const hasOption = (headers: RequestHeaders, name: string, wanted: string): boolean =>
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

const MAX_PATH = 8

export const pathOf = (header: string | undefined): readonly string[] =>
  header === undefined ? [] : splitList(header).slice(0, MAX_PATH)

/**
 * Whether the next proxy of a Path is the very host that has sent it; by address, names say nothing. RFC 3327 §5.3 leaves
 * it to the registrar which Path to trust. It says where calls to a phone are sent, with a Request-URI that the phone has
 * chosen: a phone that named a carrier's address there could send calls to that carrier in our name, without a payer.
 */
export function leadsBack(
  [next]: readonly string[],
  { address }: Pick<Source, 'address'>,
): boolean {
  // The address alone in its brackets, so that nothing around it is read differently elsewhere.
  if (next?.startsWith('<') !== true || !next.endsWith('>')) return false
  const uri = parseUri(parseNameAddr(next)?.uri ?? '')
  if (uri?.host.toLowerCase() !== address.toLowerCase() || uri.headers.length > 0) return false
  // RFC 3261 §19.1.1: `maddr` stands in the place of the host; an escaped name could be read as that.
  return [...uri.params.keys()].every((name) => name !== 'maddr' && /^[\w.-]+$/.test(name))
}
