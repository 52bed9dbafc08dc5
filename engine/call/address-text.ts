/**
 * Addresses of From, To and identity headers taken apart and put together again, so that one part
 * can be written and the rest stays as it is. Pure.
 */
import {
  formatNameAddr,
  parseNameAddr,
  readAddress,
  readUri,
  unescapeText,
} from '../../schema/sip/index.ts'

/** A (name and) URI, taken apart. */
export interface AddressText {
  readonly name: string
  readonly scheme: string
  /** Decoded, without parameters. */
  readonly user: string
  /** The user part as it is written, with its parameters. */
  readonly writtenUser: string
  readonly host: string
  readonly uriParams: readonly AddressParam[]
  readonly params: readonly AddressParam[]
}

/** A parameter without value has undefined. */
export type AddressParam = readonly [name: string, value: string | undefined]

export function addressOf(value: string): AddressText | undefined {
  const parsed = parseNameAddr(value)
  if (parsed === undefined) return undefined
  const { displayName: name, uri } = readAddress(value)
  const { scheme, user: writtenUser, hostPort: host, params } = readUri(uri)
  if (scheme !== 'sip' && scheme !== 'sips' && scheme !== 'tel') return undefined
  const [plain = ''] = writtenUser.split(';', 1)
  const close = value.indexOf('>')
  const behind =
    close === -1 ? value.slice(value.indexOf(uri) + uri.length) : value.slice(close + 1)
  const user = unescapeText(plain) ?? plain
  return {
    name,
    scheme,
    user,
    writtenUser,
    host,
    uriParams: paramsIn(params),
    params: paramsIn(behind),
  }
}

const paramsIn = (text: string): readonly AddressParam[] =>
  text
    .split(';')
    .map((each) => each.trim())
    .filter(Boolean)
    .map((each) => {
      const equals = each.indexOf('=')
      return equals === -1 ? [each, undefined] : [each.slice(0, equals), each.slice(equals + 1)]
    })

const paramsText = (params: readonly AddressParam[]): string =>
  params.map(([name, value]) => (value === undefined ? `;${name}` : `;${name}=${value}`)).join('')

export function uriText({ scheme, writtenUser, host, uriParams }: AddressText): string {
  const user = scheme === 'tel' || writtenUser === '' ? writtenUser : `${writtenUser}@`
  return `${scheme}:${user}${host}${paramsText(uriParams)}`
}

/** A value that no rule has changed keeps its spelling. */
export function formatted(address: AddressText, original: string): string {
  const before = addressOf(original)
  const text = (each: AddressText) =>
    formatNameAddr(each.name, uriText(each)) + paramsText(each.params)
  return before !== undefined && text(before) === text(address) ? original : text(address)
}

/** RFC 3261 §25.1 `user`, without the signs that begin a parameter or headers. */
export const escapedUser = (text: string): string => escapedBut(text, /[A-Za-z0-9_.!~*'()+$&=-]/)
/** RFC 3261 §25.1 `pvalue`. */
export const uriValue = (text: string): string => escapedBut(text, /[A-Za-z0-9_.!~*'()+$&:/[\]-]/)

const escapedBut = (text: string, plain: RegExp): string =>
  Array.from(text, (each) => (plain.test(each) ? each : percent(each))).join('')

/** Half a character has no UTF-8. */
const percent = (character: string): string =>
  encodeURIComponent(character.replace(/\p{Surrogate}/gu, '\uFFFD')).replace(
    /[!'()*]/g,
    (each) => `%${each.charCodeAt(0).toString(16).toUpperCase()}`,
  )
