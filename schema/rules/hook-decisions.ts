/**
 * Checks answers of the operator's code to a call that asks it. A file of hooks and a routing
 * webhook are checked alike: an answer that is not allowed counts as a failure, and is not used in
 * part.
 */
import type { DecidingHook, HookDecisions } from '../contracts/hooks.ts'
import { sipTarget } from '../net/sip-target.ts'
import { isToken, parseUri } from '../sip/index.ts'
import { readNumber } from './numbers.ts'

export type CheckedDecision<H extends DecidingHook> =
  /** Only known fields that are set; numbers are in normal form. */
  | { readonly kind: 'decision'; readonly decision: HookDecisions[H] }
  /** The call goes on as without a hook. */
  | { readonly kind: 'nothing' }
  /** `why` is one sentence that names the hook and the field, and shows no value in full. */
  | { readonly kind: 'wrong'; readonly why: string }

/**
 * @param answer any value, such as parsed JSON. Undefined and null, and fields that are undefined
 *   or null, count as absent.
 */
export function checkDecision<H extends DecidingHook>(
  hook: H,
  answer: unknown,
): CheckedDecision<H> {
  if (answer === undefined || answer === null) return { kind: 'nothing' }
  const wrong = (what: string) => ({ kind: 'wrong', why: `the answer of ${hook} ${what}` }) as const
  if (!isRecord(answer)) return wrong(`is ${kindOf(answer)} where an object is expected`)
  const fields: Readonly<Record<string, Check>> = fieldsOf[hook]
  const decision: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(answer)) {
    const check = Object.hasOwn(fields, name) ? fields[name] : undefined
    if (check === undefined) return wrong(`has the unknown field ${shown(name)}`)
    if (value === undefined || value === null) continue
    const checked = check(value)
    if ('problem' in checked) return wrong(`is not allowed: ${name} ${checked.problem}`)
    decision[name] = checked.value
  }
  const contradiction = contradictionIn(decision)
  if (contradiction !== undefined) return wrong(`is not allowed: ${contradiction}`)
  if (Object.keys(decision).length === 0) return { kind: 'nothing' }
  // The table has a check for each field of this decision.
  return { kind: 'decision', decision }
}

const MAX_NAME_LENGTH = 100
const MAX_URI_LENGTH = 512
const MAX_CARRIERS = 16
const MAX_HEADERS = 16
const MAX_HEADER_NAME_LENGTH = 64
const MAX_HEADER_LENGTH = 256
const MAX_TAGS = 16
const MAX_TAG_NAME_LENGTH = 64
const MAX_TAG_LENGTH = 128
const MAX_CANDIDATES = 1_000

type Checked = { readonly value: unknown } | { readonly problem: string }
type Check = (value: unknown) => Checked

const number: Check = (value) => {
  if (typeof value !== 'string') return expected('a text', value)
  const { kind, text } = readNumber(value)
  if (kind === 'number') return { value: text }
  return { problem: 'is no telephone number' }
}

/** The characters of the user part of a SIP URI that need no escape and separate nothing. */
const userName = /^[A-Za-z0-9_.!~*'+$&#-]{1,64}$/

const numberOrName: Check = (value) => {
  if (typeof value !== 'string') return expected('a text', value)
  const { kind, text } = readNumber(value)
  if (kind === 'number') return { value: text }
  if (kind === 'name' && userName.test(value)) return { value }
  return { problem: 'is neither a telephone number nor a name' }
}

/** A line break in a value would be the start of another header. */
const controlCharacter = /\p{Cc}|\p{Zl}|\p{Zp}/u

const text =
  (most: number): Check =>
  (value) => {
    if (typeof value !== 'string') return expected('a text', value)
    if (value.length > most) return { problem: `has more than ${most} characters` }
    if (controlCharacter.test(value)) return { problem: 'has a line break or a control character' }
    return { value }
  }

/** A dispatcher set, a carrier, an agent. */
const idOrName: Check = (value) => {
  if (typeof value === 'number')
    return Number.isSafeInteger(value) && value > 0 ? { value } : { problem: 'is no id' }
  if (typeof value !== 'string') return expected('an id or a name', value)
  return value === '' ? { problem: 'is empty' } : text(MAX_NAME_LENGTH)(value)
}

const carriers: Check = (value) => {
  if (!isList(value)) return expected('a list', value)
  if (value.length === 0) return { problem: 'is empty' }
  if (value.length > MAX_CARRIERS) return { problem: `has more than ${MAX_CARRIERS} entries` }
  for (const [index, entry] of value.entries()) {
    const checked = idOrName(entry)
    if ('problem' in checked)
      return { problem: `has an entry ${index + 1} that ${checked.problem}` }
  }
  return { value: [...value] }
}

const domainName = /^[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$/

const extension: Check = (value) => {
  if (typeof value !== 'string') return expected('a text', value)
  const [name = '', domain, ...rest] = value.split('@')
  const isRight =
    userName.test(name) && rest.length === 0 && (domain === undefined || domainName.test(domain))
  return isRight ? { value } : { problem: 'is neither like 101 nor like 101@domain' }
}

const uri: Check = (value) => {
  const checked = text(MAX_URI_LENGTH)(value)
  if ('problem' in checked || typeof value !== 'string') return checked
  const isSip = /^sips?:/i.test(value) && parseUri(value) !== undefined
  // Headers of a URI would become headers of the INVITE.
  if (!isSip || value.includes('?') || sipTarget(value) === undefined)
    return { problem: 'is no SIP URI, or has headers' }
  return { value }
}

const headers: Check = (value) => {
  if (!isRecord(value)) return expected('an object', value)
  const entries = presentIn(value)
  if (entries.length > MAX_HEADERS) return { problem: `has more than ${MAX_HEADERS} entries` }
  const names = new Set<string>()
  for (const [name, content] of entries) {
    const problem = headerProblem(name) ?? problemOf(text(MAX_HEADER_LENGTH)(content))
    if (problem !== undefined) return { problem: `has a header ${shown(name)} that ${problem}` }
    if (names.has(name.toLowerCase())) return { problem: `has ${shown(name)} twice` }
    names.add(name.toLowerCase())
  }
  return { value: Object.fromEntries(entries) }
}

function headerProblem(name: string): string | undefined {
  if (!isToken(name) || !/^[A-Za-z]/.test(name)) return 'is no name of a header'
  if (name.length > MAX_HEADER_NAME_LENGTH)
    return `has a name of more than ${MAX_HEADER_NAME_LENGTH} characters`
  const plain = name.toLowerCase()
  const isReserved =
    reservedHeaders.has(plain) || reservedPrefixes.some((prefix) => plain.startsWith(prefix))
  return isReserved && !freeHeaders.has(plain) ? 'a hook may not set' : undefined
}

/**
 * Headers by which servers route, negotiate, authenticate, identify, charge and frame messages:
 * those of a leg are its own. Compact forms stand beside them (RFC 3261 §7.3.3 and later).
 */
const reservedHeaders: ReadonlySet<string> = new Set(
  [
    'via v route record-route path service-route contact m call-id i cseq from f to t',
    'max-forwards max-breadth authorization www-authenticate authentication-info rack rseq',
    'require supported k unsupported allow accept accept-encoding allow-events u event o expires',
    'min-expires session-expires x min-se subscription-state recv-info info-package',
    'identity y identity-info privacy diversion history-info remote-party-id geolocation',
    'geolocation-routing geolocation-error refer-to r refer-sub refer-events-at referred-by b',
    'replaces join target-dialog request-disposition d accept-contact a reject-contact j',
    'session-id answer-mode priv-answer-mode early-media feature-caps flow-timer',
    'mime-version c l e date timestamp user-agent server warning retry-after hide encryption',
    'sip-etag sip-if-match suppress-if-match same-request trigger-consent permission-missing',
    'resource-priority accept-resource-priority policy-id policy-contact relayed-charge',
    // The mark of our calls towards nodes.
    'x-call-uuid',
  ].flatMap((line) => line.split(' ')),
)

/** `p-`: private headers of networks (RFC 7315), which are believed where they are trusted. */
const reservedPrefixes = ['content-', 'proxy-', 'p-', 'security-', 'x-tollgate-', 'cellular-']

const freeHeaders: ReadonlySet<string> = new Set(['p-early-media'])

const tagName = /^[A-Za-z][\w.-]*$/

const tags: Check = (value) => {
  if (!isRecord(value)) return expected('an object', value)
  const entries = presentIn(value)
  if (entries.length > MAX_TAGS) return { problem: `has more than ${MAX_TAGS} entries` }
  for (const [name, content] of entries) {
    if (name.length > MAX_TAG_NAME_LENGTH || !tagName.test(name))
      return { problem: `has a tag ${shown(name)} whose name is not made of letters, digits, _.-` }
    const problem = problemOf(text(MAX_TAG_LENGTH)(content))
    if (problem !== undefined) return { problem: `has a tag ${shown(name)} that ${problem}` }
  }
  return { value: Object.fromEntries(entries) }
}

const yesOrNo: Check = (value) =>
  typeof value === 'boolean' ? { value } : expected('true or false', value)

const refuse: Check = (value) => {
  if (!isRecord(value)) return expected('an object', value)
  const { status, reason, ...rest } = value
  const [unknown] = Object.keys(rest)
  if (unknown !== undefined) return { problem: `has the unknown field ${shown(unknown)}` }
  if (typeof status !== 'number' || !Number.isInteger(status))
    return { problem: 'has no whole number as status' }
  if (status < 400 || status > 699) return { problem: 'has a status outside of 400 to 699' }
  if (status === 401 || status === 407)
    return { problem: `has the status ${status} of a challenge` }
  if (reason === undefined || reason === null) return { value: { status } }
  const problem = problemOf(text(MAX_NAME_LENGTH)(reason))
  return problem === undefined
    ? { value: { status, reason } }
    : { problem: `has a reason that ${problem}` }
}

const order: Check = (value) => {
  if (!isList(value)) return expected('a list', value)
  if (value.length === 0) return { problem: 'is empty; use refuse to end the call' }
  if (value.length > MAX_CANDIDATES) return { problem: `has more than ${MAX_CANDIDATES} entries` }
  const isPosition = (each: unknown) => Number.isSafeInteger(each) && Number(each) >= 0
  if (!value.every(isPosition)) return { problem: 'has an entry that is no position' }
  if (new Set(value).size < value.length) return { problem: 'has a position twice' }
  return { value: [...value] }
}

const fieldsOf = {
  onRegister: { refuse },
  onInvite: {
    refuse,
    to: numberOrName,
    from: number,
    fromName: text(MAX_NAME_LENGTH),
    set: idOrName,
    carriers,
    extension,
    agent: idOrName,
    uri,
    headers,
    tags,
    record: yesOrNo,
  },
  onRoute: { refuse, order },
  onAttemptFailed: { failover: yesOrNo },
} satisfies { readonly [H in DecidingHook]: Readonly<Record<keyof HookDecisions[H], Check>> }

const targets = ['set', 'carriers', 'extension', 'agent', 'uri']

/** Fields that contradict each other. Tags of a refused call go into its record. */
function contradictionIn(decision: Readonly<Record<string, unknown>>): string | undefined {
  const [one, other] = targets.filter((name) => name in decision)
  if (one !== undefined && other !== undefined) return `${one} and ${other} are two targets`
  if (!('refuse' in decision)) return undefined
  const beside = Object.keys(decision).find((name) => name !== 'refuse' && name !== 'tags')
  return beside === undefined ? undefined : `refuse ends the call, and ${beside} stands beside it`
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const isList = (value: unknown): value is readonly unknown[] => Array.isArray(value)

/** Entries of an object that have a value. */
const presentIn = (value: Readonly<Record<string, unknown>>): readonly [string, unknown][] =>
  Object.entries(value).filter(([, content]) => content !== undefined && content !== null)

const problemOf = (checked: Checked): string | undefined =>
  'problem' in checked ? checked.problem : undefined

const expected = (what: string, value: unknown): Checked => ({
  problem: `is ${kindOf(value)} where ${what} is expected`,
})

function kindOf(value: unknown): string {
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'string') return 'a text'
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}

const shown = (name: string): string => JSON.stringify(name.slice(0, MAX_HEADER_NAME_LENGTH))
