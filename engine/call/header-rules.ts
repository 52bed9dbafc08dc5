/**
 * Applies the header and URI rules of a carrier (SPECIFICATION.md §4.7) to an INVITE: one that it
 * has sent, before it is read, or one to it, before it is sent. Pure.
 */
import {
  ANONYMOUS_HOST,
  formatNameAddr,
  headerNamed,
  isToken,
  parseNameAddr,
  readAddress,
  splitList,
} from '../../schema/sip/index.ts'
import { replaceMatch } from '../../schema/rules/bounded-pattern.ts'
import {
  type CompiledRule,
  isAddress,
  patternOf,
  REQUEST_URI,
  type RuleVariable,
  spelledHeader,
} from '../../schema/rules/header-rules.ts'
import type { CallTags } from '../../schema/contracts/call-record.ts'
import {
  type AddressText,
  addressOf,
  escapedUser,
  formatted,
  type AddressParam,
  uriText,
  uriValue,
} from './address-text.ts'
import type { Headers } from './signalling.ts'

/** The values of variables. */
export interface RuleFacts {
  readonly callUuid: string
  readonly caller: string
  readonly called: string
  readonly carrier: string
  readonly customerId: number | null
  /** Routing number of a ported number. */
  readonly rn?: string | undefined
  readonly tags?: CallTags | undefined
  /** Address from which the INVITE came. */
  readonly source?: string | undefined
  /** Our host and port; absent: the SIP server puts them in. */
  readonly ownHost?: string | undefined
}

/** The parts of an INVITE that rules read and write. */
export interface RuledMessage {
  readonly uri: string
  readonly headers: Headers
}

export interface Ruled extends RuledMessage {
  /** Numbers of the rules that have changed it. */
  readonly ruledBy: readonly number[]
}

/** Characters of a header after a rule: a rule that would make a longer one has no effect. */
const MAX_VALUE_LENGTH = 512
const MAX_DISPLAY_NAME = 128
/** Values of one header that a rule looks at. */
const MAX_VALUES = 8

export function applyHeaderRules(
  rules: readonly CompiledRule[],
  message: RuledMessage,
  facts: RuleFacts,
): Ruled {
  const draft: Draft = { uri: message.uri, headers: { ...message.headers }, facts }
  const ruledBy: number[] = []
  for (const rule of rules) if (apply(rule, draft)) ruledBy.push(rule.number)
  return { uri: draft.uri, headers: draft.headers, ruledBy }
}

/** The INVITE while rules change it, one after the other. */
interface Draft {
  uri: string
  readonly headers: Headers
  readonly facts: RuleFacts
}

function apply(compiled: CompiledRule, draft: Draft): boolean {
  const { rule, header } = compiled
  const before = read(draft, header)
  const after =
    rule.part === 'value'
      ? wholeAfter(compiled, before, draft)
      : partsAfter(compiled, before, draft)
  if (after === before || (after !== undefined && !isSound(header, after))) return false
  write(compiled, after, draft)
  return true
}

const read = ({ uri, headers }: Draft, header: string): string | undefined =>
  header === REQUEST_URI ? uri : headerNamed(headers, header)

function write({ rule, header }: CompiledRule, value: string | undefined, draft: Draft): void {
  if (header === REQUEST_URI) {
    if (value !== undefined) draft.uri = value
    return
  }
  const { headers } = draft
  const name = Object.keys(headers).find((each) => each.toLowerCase() === header)
  if (value === undefined) {
    if (name !== undefined) delete headers[name]
  } else headers[name ?? spelledHeader(rule)] = withOwnHost(header, value, draft.facts)
}

/** The SIP server puts our address into these by itself. */
const byServer: ReadonlySet<string> = new Set(['from', 'to', 'p-asserted-identity'])

const withOwnHost = (header: string, value: string, { ownHost }: RuleFacts): string =>
  ownHost === undefined || byServer.has(header)
    ? value
    : value.replace(/@localhost(?=[;>?,\s]|$)/gi, () => `@${ownHost}`)

/** A line break would begin another header; an address that nobody can read is none. */
function isSound(header: string, value: string): boolean {
  if (value.length > MAX_VALUE_LENGTH || /\p{Cc}/u.test(value)) return false
  if (header === REQUEST_URI) return !/[\s<>"]/.test(value)
  return !isAddress(header) || splitList(value).every((each) => parseNameAddr(each) !== undefined)
}

/** The whole value of a header; undefined: there is none any more. */
function wholeAfter(
  compiled: CompiledRule,
  before: string | undefined,
  draft: Draft,
): string | undefined {
  const { rule, header, source } = compiled
  const pattern = patternOf(compiled)
  switch (rule.do) {
    case 'remove':
      return undefined
    case 'set':
      return filled(compiled, draft) || before
    case 'add': {
      const added = filled(compiled, draft)
      if (added === '') return before
      return before === undefined ? added : `${before}, ${added}`
    }
    case 'copy': {
      const copied = copiedWhole(read(draft, source), source, header)
      return copied ?? before
    }
    case 'rewrite':
      return before === undefined || pattern === undefined
        ? before
        : replaceMatch(pattern, before, rule.replacement ?? '')
  }
}

/** Parameters of From and To are of their dialog: of an address, name and URI are copied. */
function copiedWhole(
  value: string | undefined,
  source: string,
  header: string,
): string | undefined {
  if (value === undefined || !isAddress(source)) return value
  if (source === REQUEST_URI) return isAddress(header) ? `<${value}>` : value
  const { displayName, uri } = readAddress(value)
  return uri === '' ? undefined : formatNameAddr(displayName, uri)
}

/** The header with another part in each of its values. */
function partsAfter(
  compiled: CompiledRule,
  before: string | undefined,
  draft: Draft,
): string | undefined {
  const { rule, header } = compiled
  const wanted = wantedPart(compiled, draft)
  if (before === undefined) {
    const isNew = rule.part === 'user' && typeof wanted === 'string' && wanted !== ''
    return isNew ? `<sip:${escapedUser(wanted)}@${OWN_HOST}>` : undefined
  }
  if (header === REQUEST_URI) {
    const address = addressOf(`<${before}>`)
    return address === undefined ? before : uriText(changed(address, compiled, wanted))
  }
  const values = splitList(before)
  const after = values.map((value, index) => {
    const address = index < MAX_VALUES ? addressOf(value) : undefined
    return address === undefined ? value : formatted(changed(address, compiled, wanted), value)
  })
  return after.every((value, index) => value === values[index]) ? before : after.join(', ')
}

/** The SIP server replaces this host by its own address. */
const OWN_HOST = 'localhost'

/** The part as it becomes; undefined: it stays as it is, or (`rewrite`) depends on what it is. */
function wantedPart(compiled: CompiledRule, draft: Draft): string | undefined {
  const { rule, source } = compiled
  const { part, parameter = '' } = rule
  if (rule.do === 'set') {
    const isFlag = (rule.value ?? '') === ''
    const text = filled(compiled, draft)
    return text === '' && !isFlag ? undefined : text
  }
  if (rule.do !== 'copy') return undefined
  const value = read(draft, source)
  const [first] =
    value === undefined ? [] : source === REQUEST_URI ? [`<${value}>`] : splitList(value)
  const address = first === undefined ? undefined : addressOf(first)
  return address && partOf(address, part, parameter)
}

function partOf(address: AddressText, part: string, parameter: string): string | undefined {
  switch (part) {
    case 'display_name':
      return address.name
    case 'user':
      return address.user
    case 'host':
      return address.host
    case 'uri_parameter':
      return valueIn(address.uriParams, parameter)
    case 'parameter':
    default:
      return valueIn(address.params, parameter)
  }
}

const valueIn = (params: readonly AddressParam[], wanted: string): string | undefined => {
  const found = params.find(([name]) => name.toLowerCase() === wanted.toLowerCase())
  return found && (found[1] ?? '')
}

/** The address after a rule; itself where the rule has no effect on it. */
function changed(
  address: AddressText,
  compiled: CompiledRule,
  wanted: string | undefined,
): AddressText {
  const { rule } = compiled
  const pattern = patternOf(compiled)
  const { part, parameter = '', replacement = '' } = rule
  const before = partOf(address, part, parameter)
  const isRemoved = rule.do === 'remove'
  const rewritten =
    pattern === undefined || before === undefined
      ? undefined
      : replaceMatch(pattern, before, replacement)
  const after = rule.do === 'rewrite' ? rewritten : wanted
  if (after === before || (after === undefined && !isRemoved)) return address
  switch (part) {
    case 'display_name':
      return { ...address, name: (after ?? '').slice(0, MAX_DISPLAY_NAME) }
    case 'user':
      // Parameters beside the number were said about the old one.
      return after === undefined || after === ''
        ? address
        : { ...address, writtenUser: escapedUser(after) }
    case 'host':
      return after === undefined || address.scheme === 'tel' || !hostText.test(after)
        ? address
        : { ...address, host: after }
    case 'uri_parameter':
      return { ...address, uriParams: withParam(address.uriParams, parameter, after, uriValue) }
    case 'parameter':
      return { ...address, params: withParam(address.params, parameter, after, headerValue) }
    case 'value':
    default:
      return address
  }
}

const hostText =
  /^(?:[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?|\[[0-9A-Fa-f:.]{2,45}\])(?::\d{1,5})?$/

/** In the place of the old one, else at the end. */
function withParam(
  params: readonly AddressParam[],
  wanted: string,
  value: string | undefined,
  encode: (text: string) => string,
): readonly AddressParam[] {
  const isIt = ([name]: AddressParam): boolean => name.toLowerCase() === wanted.toLowerCase()
  if (value === undefined) return params.filter((each) => !isIt(each))
  const param: AddressParam = [wanted, value === '' ? undefined : encode(value)]
  return params.some(isIt) ? params.map((each) => (isIt(each) ? param : each)) : [...params, param]
}

const headerValue = (text: string): string =>
  isToken(text) ? text : `"${text.replace(/["\\]/g, '\\$&')}"`

/** The value of a rule, with what its variables stand for; empty: there is nothing to write. */
function filled({ value, rule, header }: CompiledRule, draft: Draft): string {
  // In other headers a name of the caller could be the end of one value and the begin of another.
  const isText = rule.part !== 'value' || header.startsWith('x-')
  const put = (variable: RuleVariable): string => {
    const text = printable(valueOf(variable, draft))
    return isText ? text : text.replace(/["\\<>,;]/g, '')
  }
  const parts = value.map((part) => (typeof part === 'string' ? part : put(part)))
  const isEmpty =
    value.some((part) => typeof part !== 'string') &&
    parts.every((part, index) => part === '' || typeof value[index] === 'string')
  return isEmpty ? '' : parts.join('')
}

/** Control characters would be line breaks. */
const printable = (text: string): string => text.replace(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ').trim()

function valueOf({ variable, of }: RuleVariable, draft: Draft): string {
  const { facts } = draft
  switch (variable) {
    case 'call_uuid':
      return facts.callUuid
    case 'caller':
      return facts.caller
    case 'called':
      return facts.called
    case 'carrier':
      return facts.carrier
    case 'customer':
      return facts.customerId === null ? '' : `${facts.customerId}`
    case 'rn':
      return facts.rn ?? ''
    case 'source':
      return facts.source ?? ''
    case 'tag':
      return facts.tags?.[of] ?? ''
    case 'presented': {
      const from = headerNamed(draft.headers, 'from')
      const address = from === undefined ? undefined : addressOf(from)
      return address === undefined || address.host === ANONYMOUS_HOST ? '' : address.user
    }
    case 'header':
    default:
      return read(draft, of) ?? ''
  }
}
