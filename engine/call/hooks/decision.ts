/**
 * Applies a decision of the operator's code to a call. Pure: `ReachedBy` looks up names, and knows
 * what the call's source and the decider may reach.
 */
import type { HookRefusal, InviteDecision } from '../../../schema/contracts/hooks.ts'
import { sipTarget } from '../../../schema/net/sip-target.ts'
import { readNumber } from '../../../schema/rules/numbers.ts'
import {
  escapeUser,
  formatNameAddr,
  headerNamed,
  hostPort,
  readUri,
} from '../../../schema/sip/index.ts'
import type { HookEffects } from '../call-machine/protocol.ts'
import type { IncomingInvite } from '../inbound/incoming-invite.ts'
import type { ChosenTarget } from '../inbound/route.ts'
import { isAnonymous, partyOfNumber, type Party } from '../sip-headers.ts'
import type { Headers } from '../signalling.ts'

/** Finds what a call may be sent to; undefined: there is no such thing within its reach. */
export interface ReachedBy {
  /** A number in normal form, with `+` in place of an exit code. */
  dialled(number: string): string
  isEmergency(number: string): boolean
  setId(named: number | string): number | undefined
  carrierId(named: number | string): number | undefined
  agentId(named: number | string): number | undefined
  /** `101` or `101@domain`; `ambiguous`: several domains have it, and none is named. */
  extension(
    named: string,
  ): { readonly extension: string; readonly domain: string } | 'ambiguous' | undefined
  /** Whether a host outside may be called. A sentence: why not. */
  whyNot(host: string): string | undefined
  /** The tenant of the call, or of who has decided. */
  readonly tenantId: number | null
}

/** The effects on the call itself, without the notes of its trace. */
type Effects = Omit<HookEffects, 'notes'>

export type DecidedInvite =
  | { readonly kind: 'goes_on'; readonly invite: IncomingInvite; readonly effects: Effects }
  | { readonly kind: 'refused'; readonly refusal: HookRefusal; readonly effects: Effects }
  /** It names what the call cannot reach: nothing of it holds. `why` is one sentence. */
  | { readonly kind: 'wrong'; readonly why: string; readonly field: keyof InviteDecision }

/** Applies a checked decision to the INVITE of a call. The payer stays the original caller. */
export function decisionOn(
  invite: IncomingInvite,
  decision: InviteDecision,
  reached: ReachedBy,
): DecidedInvite {
  const { refuse, tags, record, headers } = decision
  const kept = {
    ...(tags !== undefined && { tags }),
    ...(record !== undefined && { isToBeRecorded: record }),
  }
  if (refuse !== undefined) return { kind: 'refused', refusal: refuse, effects: kept }
  const called = calledBy(invite, decision.to, reached)
  if (typeof called === 'string') return { kind: 'wrong', why: called, field: 'to' }
  const chosen = targetIn(decision, reached)
  if (typeof chosen === 'string')
    return { kind: 'wrong', why: chosen, field: targetField(decision) }
  const { target, isSecure, calledUser } = chosen
  const decided: IncomingInvite = {
    ...invite,
    ...called,
    ...shownBy(invite, decision),
    ...(target && { target }),
    ...(calledUser !== undefined && { calledUser }),
    ...(isSecure === true && { isSecure }),
    ...(headers !== undefined && { added: { ...invite.added, ...headers } }),
  }
  const { calledNumber } = decided
  const isOther = calledNumber !== invite.calledNumber
  return {
    kind: 'goes_on',
    invite: decided,
    effects: { ...kept, ...(isOther && { calledNumber }) },
  }
}

type Called = Pick<IncomingInvite, 'calledNumber' | 'calledUser' | 'irregular' | 'domain'>

/** The number that is called instead; a sentence: why it may not be called. */
function calledBy(
  { origin, domain, calledNumber }: IncomingInvite,
  to: string | undefined,
  reached: ReachedBy,
): Called | Record<string, never> | string {
  if (to === undefined) return {}
  const { kind, text } = readNumber(to)
  if (kind === 'malformed' || text === '' || /[:@]/.test(text))
    return 'to is neither a telephone number nor a name'
  const number = kind === 'number' ? reached.dialled(text) : text
  // Emergency calls ask no hook, and skip wallet and limits: only the caller makes one.
  if (reached.isEmergency(number)) return 'to is an emergency number, which only a caller dials'
  if (number === calledNumber) return {}
  return {
    calledNumber: number,
    calledUser: escapeUser(number),
    irregular: kind === 'name' ? kind : undefined,
    // A number is dialled at home: the domain that was dialled says nothing about it.
    domain: origin.kind === 'extension' ? origin.domain : domain,
  }
}

/** Headers that show the number of the caller beside From. A signature is of the old number. */
const shownNumbers = new Set(['p-asserted-identity', 'remote-party-id', 'identity'])

/** The caller as the called side sees it. A caller that hides its number stays hidden. */
function shownBy(
  { from, headers, callerNumber }: IncomingInvite,
  { from: number, fromName }: InviteDecision,
): Partial<Pick<IncomingInvite, 'from' | 'headers'>> {
  if (number === undefined && fromName === undefined) return {}
  const isHidden = isAnonymous(from)
  const name = isHidden ? from.name : (fromName ?? from.name)
  if (number === undefined) return { from: { ...from, name }, headers: renamed(headers, fromName) }
  const shown: Party = isHidden ? from : partyOfNumber(number, from.host, name)
  const passed: Headers = {}
  for (const [key, value] of Object.entries(headers))
    if (!shownNumbers.has(key.toLowerCase())) passed[key] = value
  const isAsserted = headerNamed(headers, 'p-asserted-identity') !== undefined
  if (isAsserted || (isHidden && callerNumber !== ''))
    passed['p-asserted-identity'] = asserted(number, fromName ?? '')
  return { from: shown, headers: passed }
}

/** The host is replaced by ours before it is sent. */
const asserted = (number: string, name: string): string =>
  formatNameAddr(name, `sip:${escapeUser(number)}@localhost`)

/** Without a name beside the asserted number, which would contradict that in From. */
function renamed(headers: Headers, name: string | undefined): Headers {
  const value = headerNamed(headers, 'p-asserted-identity')
  if (value === undefined || name === undefined) return headers
  const { user, hostPort: host } = readUri(/<([^>]*)>/.exec(value)?.[1] ?? value)
  if (user === '') return headers
  const passed = { ...headers }
  for (const key of Object.keys(passed))
    if (key.toLowerCase() === 'p-asserted-identity') delete passed[key]
  passed['p-asserted-identity'] = formatNameAddr(name, `sip:${user}@${host || 'localhost'}`)
  return passed
}

interface Chosen {
  readonly target?: ChosenTarget
  readonly calledUser?: string
  readonly isSecure?: true
}

const targetFields = ['set', 'carriers', 'extension', 'agent', 'uri'] as const

const targetField = (decision: InviteDecision): keyof InviteDecision =>
  targetFields.find((field) => decision[field] !== undefined) ?? 'uri'

/** The target of a decision; a sentence: why it cannot be reached. */
function targetIn(decision: InviteDecision, reached: ReachedBy): Chosen | string {
  const { set, carriers, extension, agent, uri } = decision
  if (set !== undefined) {
    const setId = reached.setId(set)
    return setId === undefined ? unknown('set', set) : { target: { kind: 'set', setId } }
  }
  if (carriers !== undefined) return carriersIn(carriers, reached)
  if (extension !== undefined) {
    const found = reached.extension(extension)
    if (found === undefined) return unknown('extension', extension)
    return found === 'ambiguous'
      ? `several domains have an extension ${extension}: name one, as ${extension}@domain`
      : { target: { kind: 'extension', ...found } }
  }
  if (agent !== undefined) {
    const agentId = reached.agentId(agent)
    return agentId === undefined ? unknown('agent', agent) : { target: { kind: 'agent', agentId } }
  }
  return uri === undefined ? {} : uriTarget(uri, reached)
}

function carriersIn(carriers: readonly (number | string)[], reached: ReachedBy): Chosen | string {
  const carrierIds: number[] = []
  for (const named of carriers) {
    const carrierId = reached.carrierId(named)
    if (carrierId === undefined) return unknown('carrier', named)
    carrierIds.push(carrierId)
  }
  return { target: { kind: 'carriers', carrierIds } }
}

/** The same sentence for what is another tenant's: nobody learns what others have. */
const unknown = (what: string, named: number | string): string =>
  `there is no ${what} ${String(named)} within reach of the call`

/** Only host, port and transport of a URI are kept: its other parameters could lead elsewhere. */
function uriTarget(uri: string, reached: ReachedBy): Chosen | string {
  const place = sipTarget(uri)
  if (place === undefined) return 'uri is no SIP URI'
  const why = reached.whyNot(place.host)
  if (why !== undefined) return why
  const { user } = readUri(uri)
  const by = place.transport ?? (place.isSecure ? 'tls' : undefined)
  const transport = by === undefined ? '' : `;transport=${by}`
  const candidate = {
    kind: 'domain',
    uri: `sip:${hostPort(place.host, place.port)}${transport}`,
    tenantId: reached.tenantId,
  } as const
  return {
    target: { kind: 'uri', candidate },
    ...(user !== '' && { calledUser: escapeUser(user) }),
    ...(place.isSecure && { isSecure: true as const }),
  }
}
