/** Writes the decided caller into the INVITE of the called leg. Pure. */
import type { PresentedIdentity } from '../../../schema/contracts/caller-identity.ts'
import { ANONYMOUS_HOST, escapeUser, formatNameAddr } from '../../../schema/sip/index.ts'
import type { CallerIdRule, CarrierAuth } from '../../routing/routing-records.ts'
import type { Headers } from '../signalling.ts'
import { privacyOf } from './privacy.ts'

export interface PresentedTo {
  /** Absent: a domain of others, which is told no asserted number (RFC 3325 §6). */
  readonly callerId?: CallerIdRule | undefined
  readonly auth?: Pick<CarrierAuth, 'fromUser' | 'fromDomain'> | undefined
  readonly calledNumber: string
  /** Our host and port. */
  readonly ownHost: string
}

/** The SIP server replaces this host by its own address, in From and P-Asserted-Identity. */
const OWN_HOST = 'localhost'

/**
 * Replaces whatever names the caller, or who has forwarded the call: nothing of it is left that was
 * not decided.
 */
export function presentIdentity(
  identity: PresentedIdentity,
  { callerId, auth, calledNumber, ownHost }: PresentedTo,
  headers: Headers,
): void {
  const { number, name, isPrivate, asserted } = identity
  for (const header of forwarding) delete headers[header]
  showForwarding(identity, { calledNumber, ownHost }, headers)
  if (callerId?.mode === 'fixed') return
  const wasAsserted = headers['p-asserted-identity'] !== undefined
  const privacy = privacyOf(headers, isPrivate)
  for (const header of naming) delete headers[header]
  const isHidden = isPrivate || number === ''
  const user = auth?.fromUser ?? (isHidden ? 'anonymous' : escapeUser(number))
  const host = auth?.fromDomain ?? (isHidden ? ANONYMOUS_HOST : OWN_HOST)
  headers['From'] = formatNameAddr(isHidden ? 'Anonymous' : name, `sip:${user}@${host}`)
  if (privacy !== undefined) headers['privacy'] = privacy
  if (callerId === undefined) return
  const isAsserting = callerId.mode === 'pai' || callerId.mode === 'policy'
  const vouched = (callerId.mode === 'pai' ? callerId.value : null) ?? asserted
  if (vouched === '' || !(isAsserting || wasAsserted)) return
  const shownName = isHidden ? '' : name
  headers['p-asserted-identity'] = formatNameAddr(
    shownName,
    `sip:${escapeUser(vouched)}@${OWN_HOST}`,
  )
}

const naming: readonly string[] = ['p-asserted-identity', 'remote-party-id', 'privacy']

/** A signature is of the number that was sent (RFC 8224): who signs calls signs the one decided. */
const forwarding: readonly string[] = ['diversion', 'history-info', 'identity']

/** RFC 5806 and RFC 7044: the number that has forwarded the call, and the one that is called. */
function showForwarding(
  { divertedBy, diversionReason = 'unknown' }: PresentedIdentity,
  { calledNumber, ownHost }: Pick<PresentedTo, 'calledNumber' | 'ownHost'>,
  headers: Headers,
): void {
  if (divertedBy === undefined) return
  const by = `sip:${escapeUser(divertedBy)}@${ownHost}`
  headers['diversion'] = `<${by}>;reason=${diversionReason}`
  const called = `sip:${escapeUser(calledNumber)}@${ownHost}`
  const cause = causes[diversionReason] ?? 302
  headers['history-info'] = `<${by}>;index=1, <${called};cause=${cause}>;index=1.1;mp=1`
}

/** RFC 4458 §2.1: why, as the cause of a URI. */
const causes: Readonly<Record<string, number>> = {
  'user-busy': 486,
  'no-answer': 408,
  unconditional: 302,
  deflection: 480,
  unavailable: 503,
  'out-of-service': 503,
}
