/**
 * The parameters that stand beside a telephone number: of a ported one (RFC 4694), of a part of its
 * line (RFC 3966), and what a network has verified about a caller's (3GPP TS 24.229 §7.2A.20).
 * Pure.
 */
import type { Verstat } from '../../../schema/contracts/stir.ts'
import { readNumber, readUserPart } from '../../../schema/rules/numbers.ts'
import {
  escapeUser,
  readAddress,
  readUri,
  splitList,
  unescapeText,
} from '../../../schema/sip/index.ts'
import type { Origin } from '../../routing/routing.ts'
import { addressOf, escapedUser, formatted } from '../address-text.ts'
import type { Headers } from '../signalling.ts'

/** Parameters of the called number. */
export interface NumberParameters {
  /** The called number that they are about: they do not pass with any other. */
  readonly number: string
  /** As carriers get them behind the number, `;npdi;rn=+1…`. */
  readonly text: string
  /** The routing number in the normal form of called numbers. */
  readonly rn?: string | undefined
}

/** A number of the caller that was verified, or was not, as From or P-Asserted-Identity has it. */
export interface CheckedNumber {
  readonly number: string
  readonly verstat: Verstat
}

/** Parameters of more characters are not read. */
const MAX_LENGTH = 256

/**
 * Names and values, in the order of RFC 3966 §3: `isub` and `ext` first, the others by the
 * alphabet.
 */
const known = {
  isub: /^[\w.!~*'()+$&:/-]{1,40}$/,
  ext: /^[0-9().-]{1,20}$/,
  cic: /^\+?[0-9A-Fa-f().-]{1,20}$/,
  'cic-context': /^(?:\+[0-9().-]{1,20}|[A-Za-z0-9.-]{1,64})$/,
  npdi: /^$/,
  rn: /^\+?[0-9A-Fa-f().-]{1,30}$/,
  'rn-context': /^(?:\+[0-9().-]{1,20}|[A-Za-z0-9.-]{1,64})$/,
} as const

type Name = keyof typeof known

const isKnown = (name: string): name is Name => Object.hasOwn(known, name)

/** A phone has looked nothing up: it would choose its price and its carrier. */
const isOfNetworks: ReadonlySet<Name> = new Set([
  'cic',
  'cic-context',
  'npdi',
  'rn',
  'rn-context',
] as const)

/**
 * The parameters of a Request-URI, sip or tel, that calls `number`. Undefined: it has none. One
 * that stands there twice, or has a value that makes no sense, is left out: two readers could read
 * two things.
 */
export function numberParameters(
  uri: string,
  number: string,
  isPhone: boolean,
  normal: (number: string) => string,
): NumberParameters | undefined {
  if (!uri.includes(';')) return undefined
  const { scheme, user, params } = readUri(uri)
  const found = paramsIn(
    scheme === 'tel' ? params : user.slice(user.indexOf(';') + 1 || user.length),
  )
  const values = new Map<Name, string>()
  for (const name of Object.keys(known)) {
    const value = isKnown(name) ? found.get(name) : undefined
    if (value === undefined || !isKnown(name) || (isPhone && isOfNetworks.has(name))) continue
    if (known[name].test(value)) values.set(name, value)
  }
  if (values.size === 0) return undefined
  const text = [...values].map(([name, value]) => shown(name, value)).join('')
  const rn = globalNumber(values.get('rn'), values.get('rn-context'))
  return { number, text, rn: rn === undefined ? undefined : normal(rn) }
}

const shown = (name: Name, value: string): string =>
  value === '' ? `;${name}` : `;${name}=${escapedUser(value)}`

/** Undefined: it is no number, such as one with hexadecimal digits. */
function globalNumber(rn: string | undefined, context: string | undefined): string | undefined {
  if (rn === undefined) return undefined
  const isLocal = !rn.startsWith('+') && context?.startsWith('+') === true
  const { kind, text } = readNumber(isLocal ? `${context ?? ''}${rn}` : rn)
  return kind === 'number' ? text : undefined
}

/** Values by small names, escapes resolved. Null: it stands there twice. */
function paramsIn(text: string): ReadonlyMap<string, string> {
  const found = new Map<string, string>()
  const doubled = new Set<string>()
  if (text.length > MAX_LENGTH) return found
  for (const part of text.split(';')) {
    const [given = '', ...rest] = part.split('=')
    const name = (unescapeText(given) ?? given).trim().toLowerCase()
    if (name === '') continue
    if (found.has(name)) doubled.add(name)
    const value = rest.join('=')
    found.set(name, unescapeText(value) ?? value)
  }
  for (const name of doubled) found.delete(name)
  return found
}

/** The parameters of a call, if they are about the number that it still calls. */
export const parametersOf = (call: {
  readonly calledNumber: string
  readonly ported?: NumberParameters | undefined
}): NumberParameters | undefined =>
  call.ported?.number === call.calledNumber ? call.ported : undefined

/** The same, where a call is known by the user part of its Request-URI. */
export const parametersFor = (call: {
  readonly calledUser: string
  readonly ported?: NumberParameters | undefined
}): NumberParameters | undefined =>
  call.ported !== undefined && escapeUser(call.ported.number) === call.calledUser
    ? call.ported
    : undefined

const verstats: readonly Verstat[] = [
  'TN-Validation-Passed',
  'TN-Validation-Failed',
  'No-TN-Validation',
]

/**
 * Whether what a source says about a caller's number is believed: of a carrier that nobody pays
 * for, and of programs of the platform. A customer could say anything about its own numbers.
 */
export const isVerifier = (origin: Origin): boolean =>
  origin.kind === 'trusted' ||
  (origin.kind === 'carrier' && origin.customerId === null && origin.payer === 'customer')

/** `verstat` beside the caller's number in P-Asserted-Identity, else in From. */
export function callerVerstat(headers: Headers): CheckedNumber | undefined {
  for (const name of ['p-asserted-identity', 'from']) {
    const value = headers[name]
    if (value === undefined || !/verstat/i.test(value)) continue
    for (const each of splitList(value).slice(0, MAX_VALUES)) {
      const { user, params } = readUri(readAddress(each).uri)
      const found = paramsIn(`${user.slice(user.indexOf(';') + 1 || user.length)}${params}`)
      const given = found.get('verstat')?.toLowerCase()
      const verstat = verstats.find((known) => known.toLowerCase() === given)
      const { kind, text: number } = readUserPart(user)
      if (verstat !== undefined && kind === 'number') return { number, verstat }
    }
  }
  return undefined
}

const MAX_VALUES = 8

/** Puts the mark beside the number in From and P-Asserted-Identity, where they show that number. */
export function markChecked(headers: Headers, { number, verstat }: CheckedNumber): void {
  for (const name of Object.keys(headers)) {
    const value = headers[name]
    if (value === undefined || !marked.has(name.toLowerCase())) continue
    headers[name] = splitList(value)
      .map((each) => markedAddress(each, number, verstat))
      .join(', ')
  }
}

const marked: ReadonlySet<string> = new Set(['from', 'p-asserted-identity'])

function markedAddress(value: string, number: string, verstat: Verstat): string {
  const address = addressOf(value)
  if (address === undefined || readUserPart(address.writtenUser).text !== number) return value
  const [plain = ''] = address.writtenUser.split(';', 1)
  const isPhone = address.uriParams.some(([name]) => name.toLowerCase() === 'user')
  const mark = ['verstat', verstat] as const
  // RFC 3966: a tel URI has it as its own parameter, a SIP URI in its user part (RFC 3261 §19.1.6).
  if (address.scheme === 'tel')
    return formatted({ ...address, uriParams: [...address.uriParams, mark] }, value)
  const uriParams = isPhone ? address.uriParams : [...address.uriParams, userIsPhone]
  return formatted({ ...address, writtenUser: `${plain};verstat=${verstat}`, uriParams }, value)
}

const userIsPhone = ['user', 'phone'] as const
