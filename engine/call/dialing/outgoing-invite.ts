/** The INVITE of the called leg: Request-URI, next hop, headers. Pure. */
import type { SpySide } from '../../../schema/rules/media.ts'
import { ANONYMOUS_HOST, escapeUser, formatNameAddr } from '../../sip-server/message/index.ts'
import type { AgentCandidate } from '../../routing/agents.ts'
import type { GatewayCandidate } from '../../routing/routing.ts'
import type { Candidate } from '../../dispatcher/destination-set.ts'
import type { Credentials, Headers } from '../signalling.ts'
import {
  advertiseReplaces,
  CALL_UUID,
  type HeaderFilter,
  isAnonymous,
  type Party,
  partyOf,
  withoutHeaders,
} from '../sip-headers.ts'
import { TRANSFER_TOKEN } from '../transfer/transfer-token.ts'

/** A phone of an extension. */
export interface PhoneCandidate {
  readonly kind: 'phone'
  /** What it registered: the Request-URI. */
  readonly uri: string
  readonly routes: readonly string[]
  /** Undefined: by the routes, or else the Request-URI. */
  readonly nextHop: string | undefined
  /** Where another node of ours sends it on to, when `routes` lead to that node. */
  readonly lastHop?: string
  /** The name of that node. */
  readonly holder?: string
  readonly extension: string
  readonly domain: string
  readonly tenantId: number
  readonly isOnWebSocket?: true
  /** Where it is, behind NAT. */
  readonly natAddress?: string
}

/** A domain of others, called by DNS. */
export interface DomainCandidate {
  readonly kind: 'domain'
  /** `sip:<host>`, without the user. */
  readonly uri: string
  /** Whose phone calls. */
  readonly tenantId: number | null
}

/** Where calls for an extension go that no phone takes. */
export interface VoicemailCandidate {
  readonly kind: 'voicemail'
  readonly uri: string
  /** Whose box. */
  readonly extension: string
  readonly domain: string
  readonly tenantId: number
}

/** Where the node of a call lets a supervisor join it. */
export interface SpyCandidate {
  readonly kind: 'spy'
  /** Where the call that is listened to is. */
  readonly setId: number | null
  readonly nodeId: number | null
  readonly node: string | null
  /** The Request-URI. */
  readonly uri: string
  /** The node that has the call. */
  readonly nextHop: string
  /** Whose set it is; null: the platform's. */
  readonly tenantId: number | null
}

/** Another node of the installation, which has a call of which a party is replaced (RFC 3891). */
export interface OtherNodeCandidate {
  readonly kind: 'other-node'
  /** Where it takes requests of nodes, without a user. */
  readonly uri: string
  /** Its name. */
  readonly holder: string
  /** The dialog that is replaced. */
  readonly replaces: string
  /** Tells the node who asks for it. */
  readonly token: string
}

/** What the media relay of a call lets a supervisor hear. No INVITE goes there. */
export interface ListenerCandidate {
  readonly kind: 'listener'
  /** `relay:<host>:<port>`, for the record. */
  readonly uri: string
  readonly listened: { readonly callUuid: string; readonly side: SpySide }
}

export type Callee =
  | (Candidate | GatewayCandidate | AgentCandidate | PhoneCandidate)
  | (VoicemailCandidate | SpyCandidate | ListenerCandidate | DomainCandidate)
  | OtherNodeCandidate

export interface OutgoingInvite {
  readonly uri: string
  /** A registration under the same name must not draw the call to itself. */
  readonly nextHop: string | undefined
  readonly headers: Headers
  readonly credentials: Credentials | undefined
}

/** What the INVITE of the called leg takes from the received one. */
export interface OutgoingCall {
  readonly callUuid: string
  readonly headers: Headers
  readonly body: string | undefined
  /** From as received. */
  readonly from: Party
  /** The domain of an extension that calls; undefined: the caller is no extension. */
  readonly home?: string | undefined
  /** The transferor (RFC 3892), as we know it; undefined: there is none, or it asks for privacy. */
  readonly referredBy?: Party | undefined
  /** User part of the Request-URI. */
  readonly calledUser: string
  /** What is left of Max-Forwards. */
  readonly hopsLeft: number
  /** It was called by `sips:`: by TLS on every hop, or not at all (RFC 3261 §26.2.2). */
  readonly isSecure?: boolean
}

/** The SIP server replaces this host by its own address, also in P-Asserted-Identity. */
const OWN_HOST = 'localhost'

export function inviteFor(
  candidate: Callee,
  invite: OutgoingCall,
  filter: HeaderFilter,
  isOneOfSeveral = false,
): OutgoingInvite {
  const outgoing = unstripped(candidate, invite, filter, isOneOfSeveral)
  const stripped = 'stripHeaders' in candidate ? candidate.stripHeaders : undefined
  return stripped ? { ...outgoing, headers: withoutHeaders(outgoing.headers, stripped) } : outgoing
}

function unstripped(
  candidate: Callee,
  invite: OutgoingCall,
  filter: HeaderFilter,
  isOneOfSeveral: boolean,
): OutgoingInvite {
  const headers = filter.invite(invite.headers)
  advertiseReplaces(headers)
  headers['Max-Forwards'] = String(invite.hopsLeft)
  headers['From'] = formatNameAddr(
    invite.from.name,
    callerUri(invite.from.user, hostOf(invite.from)),
  )
  // Names of our own users are not shown outside.
  const isOutside = candidate.kind === 'gateway' || candidate.kind === 'domain'
  if (invite.referredBy && !isOutside) headers['Referred-By'] = addressOf(invite.referredBy)
  // An offer in a reliable 18x would have to be answered in the PRACK, which the library sends empty.
  if (invite.body === undefined || isOneOfSeveral) withoutReliability(headers)
  if (candidate.kind === 'phone' || candidate.kind === 'voicemail')
    return insideInvite(candidate, invite, headers)
  if (candidate.kind === 'agent') return namedInvite(candidate.uri, candidate.uri, invite, headers)
  if (candidate.kind === 'spy')
    return namedInvite(candidate.uri, candidate.nextHop, invite, headers)
  if (candidate.kind === 'listener')
    return { uri: candidate.uri, nextHop: undefined, headers, credentials: undefined }
  if (candidate.kind === 'other-node') return replacingInvite(candidate, invite, headers)
  if (candidate.kind === 'domain') {
    if (wantsPrivacy(invite)) hideIdentities(headers)
    const uri = `sip:${invite.calledUser}@${candidate.uri.slice('sip:'.length)}`
    headers['To'] = `<${uri}>`
    return { uri, nextHop: candidate.uri, headers, credentials: undefined }
  }
  if (candidate.kind === 'node') headers[CALL_UUID] = invite.callUuid
  else presentCaller(candidate, invite, headers)

  const user = candidate.kind === 'node' ? invite.calledUser : escapeUser(candidate.number)
  const address = `${user}@${candidate.uri.slice('sip:'.length)}`
  const parameters = address.indexOf(';')
  headers['To'] = `<sip:${parameters === -1 ? address : address.slice(0, parameters)}>`
  const credentials = candidate.kind === 'node' ? undefined : credentialsOf(candidate)
  return { uri: `sip:${address}`, nextHop: candidate.uri, headers, credentials }
}

/** To an agent or a PBX: with our call UUID, by which the API knows the call. */
function namedInvite(
  uri: string,
  nextHop: string,
  invite: OutgoingCall,
  headers: Headers,
): OutgoingInvite {
  headers['To'] = `<${uri.replace(/;.*$/, '')}>`
  headers[CALL_UUID] = invite.callUuid
  return { uri, nextHop, headers, credentials: undefined }
}

function replacingInvite(
  { uri: nextHop, replaces, token }: OtherNodeCandidate,
  { calledUser }: OutgoingCall,
  headers: Headers,
): OutgoingInvite {
  const uri = calledUser === '' ? nextHop : `sip:${calledUser}@${nextHop.slice('sip:'.length)}`
  headers['To'] = `<${uri.replace(/;.*$/, '')}>`
  headers['Replaces'] = replaces
  headers['Require'] = 'replaces'
  headers[TRANSFER_TOKEN] = token
  return { uri, nextHop, headers, credentials: undefined }
}

/**
 * To a phone, or to the voicemail of one: both know the caller in its domain, if it has one, or else in
 * their own.
 */
function insideInvite(
  candidate: PhoneCandidate | VoicemailCandidate,
  invite: OutgoingCall,
  headers: Headers,
): OutgoingInvite {
  const { uri, extension, domain } = candidate
  const host = isAnonymous(invite.from) ? ANONYMOUS_HOST : (invite.home ?? domain)
  const callee = `<sip:${escapeUser(extension)}@${domain}>`
  headers['From'] = formatNameAddr(invite.from.name, callerUri(invite.from.user, host))
  headers['To'] = callee
  if (candidate.kind === 'phone') {
    if (wantsPrivacy(invite)) hideIdentities(headers)
    if (candidate.routes.length > 0) headers['Route'] = candidate.routes.join(', ')
    return { uri, nextHop: candidate.nextHop, headers, credentials: undefined }
  }
  // RFC 5806: how the mailbox is found.
  headers['diversion'] = `${callee};reason=no-answer`
  headers[CALL_UUID] = invite.callUuid
  return { uri, nextHop: uri, headers, credentials: undefined }
}

/** RFC 3325 §7: a caller that asks for privacy is known to the network, and not to the phone. */
export const wantsPrivacy = ({ from, headers }: Pick<OutgoingCall, 'from' | 'headers'>): boolean =>
  isAnonymous(from) || /\b(?:id|user|header)\b/i.test(headers['privacy'] ?? '')

function hideIdentities(headers: Headers): void {
  delete headers['p-asserted-identity']
  delete headers['remote-party-id']
}

/** Writes the caller as the carrier wants it: `caller_id` (SPECIFICATION.md §4.7). */
function presentCaller(gateway: GatewayCandidate, invite: OutgoingCall, headers: Headers): void {
  const { callerId, auth } = gateway
  const { mode, value } = callerId
  if (mode === 'fixed' && value !== null) {
    hideIdentities(headers)
    const user = auth.fromUser ?? escapeUser(value)
    headers['From'] = formatNameAddr('', callerUri(user, auth.fromDomain ?? OWN_HOST))
    return
  }
  if (mode === 'pai') assertCaller(value, invite, headers)
  const user = auth.fromUser ?? invite.from.user
  const host = auth.fromDomain ?? hostOf(invite.from)
  headers['From'] = formatNameAddr(invite.from.name, callerUri(user, host))
}

/** The carrier's fixed number, else the asserted one, else the number in From. */
function assertCaller(
  value: string | null,
  { from, headers: told }: OutgoingCall,
  headers: Headers,
) {
  const asserted = partyOf(told['p-asserted-identity'] ?? '').user
  const claimed = isAnonymous(from) ? '' : from.user
  const number = value === null ? asserted || claimed : escapeUser(value)
  if (number === '') delete headers['p-asserted-identity']
  else headers['p-asserted-identity'] = formatNameAddr('', callerUri(number, OWN_HOST))
}

/** Undefined: the carrier knows us by our address. */
export function credentialsOf({ auth }: Pick<GatewayCandidate, 'auth'>): Credentials | undefined {
  if (auth.type === 'ip' || auth.username === null || auth.password === null) return undefined
  return { username: auth.username, password: auth.password, realm: auth.realm }
}

const addressOf = ({ name, user, host }: Pick<Party, 'name' | 'user' | 'host'>): string =>
  formatNameAddr(name, callerUri(user, host))

const callerUri = (user: string, host: string): string =>
  user === '' ? `sip:${host}` : `sip:${user}@${host}`

/** RFC 3323 §4.1.1.3: an anonymous From names no host, ours neither. */
const hostOf = (from: Party): string => (isAnonymous(from) ? ANONYMOUS_HOST : OWN_HOST)

function withoutReliability(headers: Headers): void {
  const supported = headers['supported']?.split(', ').filter((token) => token !== '100rel')
  if (supported) headers['supported'] = supported.join(', ')
}
