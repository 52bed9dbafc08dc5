/**
 * A changed field in the words of the console's screens: names for ids, amounts with their
 * currency, dates as such. Pure.
 */
import { isDeepStrictEqual } from 'node:util'
import { timeToText } from '../../schema/columns.ts'
import { exactMoneyText, plural, quoted } from '../http/clean-text.ts'
import { differing, fieldsOf, type FieldState, type Json, type StateMeaning } from './kinds.ts'

export const noMeaning: StateMeaning = { currency: null, names: {} }

/** A state on one side of a change. */
interface ToldState {
  readonly state: FieldState
  readonly meaning: StateMeaning
}

/** `customer "acme", was none`; of what has no short text, only how it is called. */
export function fieldChange(name: string, before: ToldState, after: ToldState): string {
  const [from, to] = [before.state[name] ?? null, after.state[name] ?? null]
  const words = fieldWords(name)
  if (Array.isArray(from) || Array.isArray(to)) return listChange(words, listIn(from), listIn(to))
  if (isObject(from) || isObject(to)) return partsChange(words, from, to)
  const [was, is] = [valueText(name, from, before.meaning), valueText(name, to, after.meaning)]
  return `${words} ${is}, was ${was}`
}

/** The effect of a write that has no entry among the changes, by what the API shows of it. */
export function viewEffect(
  subject: string,
  before: object | null,
  after: object | null,
  hidden: readonly string[] = [],
): string | undefined {
  if (before === null) return `${subject} is created.`
  if (after === null) return `${subject} is removed.`
  const [from, to] = [shownState(before), shownState(after)]
  const parts = Object.keys(differing(from, to).after)
    .filter((name) => name !== 'updated_at')
    .map((name) =>
      name === 'url'
        ? addressChange(from[name], to[name])
        : fieldChange(name, { state: from, meaning: noMeaning }, { state: to, meaning: noMeaning }),
    )
  const told = [...hidden, ...parts]
  return told.length === 0 ? undefined : `${subject} is changed: ${told.join('; ')}.`
}

/** An address may hold a secret of its receiver, and whoever reads the log reads this. */
function addressChange(from: Json | undefined, to: Json | undefined): string {
  const hostIn = (url: Json | undefined) => (typeof url === 'string' ? hostOr(url) : 'none')
  const [was, is] = [hostIn(from), hostIn(to)]
  return was === is
    ? `address (another one at ${quoted(is)})`
    : `address ${quoted(is)}, was ${quoted(was)}`
}

/** The host of an address; any other text itself. */
export const hostOr = (text: string): string =>
  /^https?:/.test(text) && URL.canParse(text) ? new URL(text).host : text

/** A view is JSON. */
const shownState = (view: object): FieldState =>
  fieldsOf(JSON.parse(JSON.stringify(view)) as Json) ?? {}

/** The noun of a definition within a sentence: `AI agent`, `outbound route`. */
export const nounWords = (noun: string): string =>
  nouns[noun] ?? (/^[A-Z]{2}/.test(noun) ? noun : noun.toLowerCase())

const nouns: Readonly<Record<string, string>> = {
  'STIR key': 'signing key',
  'STIR authority': 'signing authority',
  'Phone number': 'number',
}

/** The words for fields whose names say something else. */
const words: Readonly<Record<string, string>> = {
  is_active: 'in use',
  is_enabled: 'in use',
  enabled: 'in use',
  endpoint_name: 'name',
  slug: 'short name',
  email: 'e-mail',
  url: 'address',
  sip_uri: 'SIP address',
  domains: 'SIP domains',
  default_number: 'number outside',
  caller_number: 'number outside',
  low_balance_threshold: 'low balance below',
  max_daily_spend: 'spend a day',
  max_concurrent_calls: 'calls at once',
  max_calls: 'calls at once',
  max_cps: 'calls per second',
  max_call_seconds: 'seconds a call',
  rate_limit_rpm: 'requests a minute',
  allowed_ips: 'allowed addresses',
  rate_per_minute: 'price of a minute',
  connect_fee: 'price of an answered call',
  first_rate_per_minute: 'price of a minute within the minimum',
  first_increment: 'minimum charge in seconds',
  increment: 'then charged in steps of seconds',
  blocked: 'calls to it are refused',
  effective_from: 'valid from',
  effective_to: 'valid until',
  expires_at: 'valid until',
  suspended_at: 'suspended since',
  revoked_at: 'revoked',
  loss_protection: 'calls that leave too little',
  is_loss_by_tenant: 'decided by the tenant',
  min_margin: 'least margin',
  priced_by: 'calls to ported numbers',
  price_change: 'a period begins during a call',
  strip: 'digits to remove',
  prepend: 'digits to add',
  emergency: 'emergency number',
  set: 'dispatcher set',
  inbound_set: 'calls from it go to the set',
  extension_domain: 'domain of the extension',
  agent: 'AI agent',
  last_number: 'last number of the block',
  voicemail_enabled: 'voicemail',
  voicemail_uri: 'voicemail address',
  spy_uri: 'address for supervisors',
  call_recording: 'recording',
  algorithm: 'node for a call',
  media: 'media relay',
  media_profile: 'kind of media',
  dtmf: 'digits',
  strip_headers: 'headers to remove',
  stir: 'signatures',
  caller_id: 'caller number',
  caller_identity: 'shown number',
  hunting: 'further attempts',
  timeout_ms: 'milliseconds that a call waits',
  fallback: 'without an answer in time',
  cache_seconds: 'seconds that an answer holds',
  cache_key: 'for calls with the same',
  window_seconds: 'seconds of calls that are looked at',
  least_calls: 'calls, at least',
  for_seconds: 'seconds that it has to last',
  group_seconds: 'seconds that are told together',
  least_severity: 'findings of at least',
  on: 'looks at',
  threshold: 'limit',
  smtp_host: 'mail server',
  smtp_port: 'port of the mail server',
  smtp_tls: 'encryption to the mail server',
  smtp_user: 'user at the mail server',
  x5u: 'address of the certificate',
}

/** `max_cps` → `calls per second`, `customer_id` → `customer` */
export function fieldWords(name: string): string {
  const bare = name.replace(/_micros$/, '')
  const known = words[bare] ?? words[bare.replace(/_id$/, '')]
  return known ?? bare.replace(/^is_/, '').replace(/_id$/, '').replaceAll('_', ' ')
}

/** Limits that 0 takes away. */
const limits = /^max_(?!daily)/
/** Values in milliseconds UTC. */
const moments = /(?:_at|_from|_to|_until|_since)$/

function valueText(name: string, value: Json, { currency, names }: StateMeaning): string {
  if (value === null) return 'none'
  const named = names[name]
  if (named !== undefined) return quoted(named)
  if (typeof value === 'string') return quoted(value)
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  if (typeof value !== 'number') return JSON.stringify(value)
  if (name.startsWith('max_daily') && value === 0) return 'unlimited'
  if (name.endsWith('_micros')) return exactMoneyText(value, currency)
  if (value === 0 && limits.test(name)) return 'unlimited'
  return moments.test(name) ? timeToText(value) : String(value)
}

/** Members that are named. */
const MAX_NAMED = 3

/** `numbers: "4930100" added`; of what has no short text, how many there are. */
function listChange(words: string, from: readonly Json[], to: readonly Json[]): string {
  if (![...from, ...to].every(isShort))
    return from.length === to.length ? words : `${words} ${to.length}, was ${from.length}`
  const added = to.filter((each) => !from.includes(each))
  const removed = from.filter((each) => !to.includes(each))
  const parts = [
    ...(added.length === 0 ? [] : [`${membersText(added)} added`]),
    ...(removed.length === 0 ? [] : [`${membersText(removed)} removed`]),
  ]
  return parts.length === 0 ? `order of the ${words}` : `${words}: ${parts.join(', ')}`
}

function membersText(members: readonly Json[]): string {
  const shown = members.slice(0, MAX_NAMED).map((each) => valueText('', each, noMeaning))
  const more = members.length - shown.length
  return `${shown.join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}

/** The members that differ, of an object whose members are short. */
function partsChange(words: string, from: Json, to: Json): string {
  if (to === null) return `${words} none`
  const [before, after] = [objectIn(from), objectIn(to)]
  const changed = [...new Set([...Object.keys(before), ...Object.keys(after)])].filter(
    (part) => !isDeepStrictEqual(before[part] ?? null, after[part] ?? null),
  )
  const told = changed.slice(0, MAX_NAMED).map((part) => {
    const [was, is] = [before[part] ?? null, after[part] ?? null]
    const named = fieldWords(part)
    if (!isShort(was) || !isShort(is)) return named
    return `${named} ${valueText(part, is, noMeaning)}, was ${valueText(part, was, noMeaning)}`
  })
  const more = changed.length - told.length
  return `${words} (${told.join(', ')}${more > 0 ? ` and ${plural(more, 'other field')}` : ''})`
}

const isObject = (value: Json): value is FieldState =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const objectIn = (value: Json): FieldState => (isObject(value) ? value : {})

const isShort = (value: Json): boolean => typeof value !== 'object' || value === null

const isList = (value: Json): value is readonly Json[] => Array.isArray(value)

const listIn = (value: Json): readonly Json[] => (isList(value) ? value : [])
