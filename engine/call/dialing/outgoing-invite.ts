/** The INVITE of the called leg: Request-URI, next hop, headers. Pure. */
import type { PresentedIdentity } from '../../../schema/contracts/caller-identity.ts'
import type { SpySide } from '../../../schema/contracts/calls.ts'
import { ANONYMOUS_HOST, escapeUser, formatNameAddr } from '../../../schema/sip/index.ts'
import type { AgentCandidate } from '../../routing/agents.ts'
import type { GatewayCandidate } from '../../routing/routing.ts'
import type { Candidate } from '../../dispatcher/destination-set.ts'
import { applyHeaderRules, type RuleFacts } from '../header-rules.ts'
import {
  type CheckedNumber,
  markChecked,
  type NumberParameters,
  parametersFor,
} from '../inbound/number-parameters.ts'
import { areApart, familiesIn, type Family } from '../sdp.ts'
import type { DigestLogin, Headers } from '../signalling.ts'
import {
  advertiseReplaces,
  CALL_UUID,
  type HeaderFilter,
  isAnonymous,
  numberedPartyOf,
  type Party,
  replaceHeaders,
  TRANSFER_TOKEN,
  withoutAlerts,
  withoutHeaders,
} from '../sip-headers.ts'
import type { KnownFirstCaller } from '../identity/first-caller.ts'
import { wantsPrivacy } from '../identity/privacy.ts'
import { presentIdentity } from '../identity/present.ts'
import type { Sender } from '../../../schema/contracts/gateways.ts'
import { senderOf } from '../../../schema/rules/gateways.ts'
import { sipTarget } from '../../../schema/net/sip-target.ts'
import { refused, type CallRefusal } from '../cdr/end-reason.ts'
import type { ApplicationCandidate } from '../application/application-runs.ts'
import {
  APPLICATION_SECRET,
  onlyOfTheWay,
  ORIGINAL_INVITE,
  type OriginalInvite,
  writeOriginal,
} from '../application/private-headers.ts'

/** A phone of an extension. */
export interface PhoneCandidate {
  readonly kind: 'phone'
  /** The registered Contact: the Request-URI. */
  readonly uri: string
  readonly routes: readonly string[]
  /** Undefined: by the routes, or else the Request-URI. */
  readonly nextHop: string | undefined
  /**
   * If `routes` lead to another instance: the address to which that instance forwards the request.
   */
  readonly lastHop?: string
  /** The name of that instance, and its run. */
  readonly holder?: string
  readonly holderRun?: number
  readonly extension: string
  readonly domain: string
  readonly tenantId: number
  readonly isOnWebSocket?: true
  /** The source address of its REGISTER, if it is behind NAT. */
  readonly natAddress?: string
}

/** A domain of others, called by DNS. */
export interface DomainCandidate {
  readonly kind: 'domain'
  /** `sip:<host>`, without the user. */
  readonly uri: string
  /** The tenant of the call. */
  readonly tenantId: number | null
}

/** The voicemail of an extension, for calls that no phone takes. */
export interface VoicemailCandidate {
  readonly kind: 'voicemail'
  readonly uri: string
  /** The extension of the mailbox. */
  readonly extension: string
  readonly domain: string
  readonly tenantId: number
}

/** An address at the node of a call where a supervisor can join it. */
export interface SpyCandidate {
  readonly kind: 'spy'
  /** The location of the supervised call. */
  readonly setId: number | null
  readonly nodeId: number | null
  readonly node: string | null
  /** The Request-URI. */
  readonly uri: string
  /** The node that has the call. */
  readonly nextHop: string
  /** The tenant of the dispatcher set. Null: the platform. */
  readonly tenantId: number | null
}

/**
 * Another instance of the installation, which has a call of which a party is replaced (RFC 3891).
 */
export interface OtherInstanceCandidate {
  readonly kind: 'other-node'
  /** The address for requests of other instances, without a user. */
  readonly uri: string
  /** The name of the instance. */
  readonly holder: string
  /** The dialog that is replaced. */
  readonly replaces: string
  /** Proves to the instance who has asked for the transfer. */
  readonly token: string
}

/** The audio of a call, from its media relay, for a supervisor. No INVITE is sent. */
export interface ListenerCandidate {
  readonly kind: 'listener'
  /** `relay:<host>:<port>`, for the record. */
  readonly uri: string
  readonly listened: MonitoredCall
}

export interface MonitoredCall {
  readonly callUuid: string
  /** The party to listen to. */
  readonly side: SpySide
}

export type Callee =
  | (Candidate | GatewayCandidate | AgentCandidate | PhoneCandidate)
  | (VoicemailCandidate | SpyCandidate | ListenerCandidate | DomainCandidate)
  | (OtherInstanceCandidate | ApplicationCandidate)

interface OutgoingInvite {
  readonly uri: string
  /** A registration under the same name must not draw the call to itself. */
  readonly nextHop: string | undefined
  readonly headers: Headers
  readonly credentials: DigestLogin | undefined
  /** Numbers of the carrier's header rules that have changed it. */
  readonly ruledBy?: readonly number[]
}

/** The parts of the received INVITE that the INVITE of the called leg needs. */
export interface OutgoingCall {
  readonly callUuid: string
  readonly headers: Headers
  /** Headers that a hook has set: every called side gets them. */
  readonly added?: Headers | undefined
  readonly body: string | undefined
  /** The received From. */
  readonly from: Party
  /** The domain of an extension that calls; undefined: the caller is no extension. */
  readonly home?: string | undefined
  /** The transferor (RFC 3892), as we know it; undefined: there is none, or it asks for privacy. */
  readonly referredBy?: Party | undefined
  /**
   * The tenants whose phones the caller may tell to answer by themselves (RFC 5373 §6); `all`:
   * those of the whole installation. Undefined: it is a stranger to all phones.
   */
  readonly alerts?: 'all' | readonly number[] | undefined
  /** User part of the Request-URI. */
  readonly calledUser: string
  /** Parameters of the called number; they pass to carriers, unless another number is called. */
  readonly ported?: NumberParameters | undefined
  /** The called side gets this mark beside the caller's number. */
  readonly checked?: CheckedNumber | undefined
  /** The rest of Max-Forwards. */
  readonly hopsLeft: number
  /** The call was made to a `sips:` URI: every hop has to use TLS (RFC 3261 §26.2.2). */
  readonly isSecure?: boolean
  /** Absent: no INVITE has begun the call. */
  readonly received?: OriginalInvite
  /** The decision about the caller for this destination. Absent: no rules say anything. */
  readonly identity?: PresentedIdentity | undefined
  /** Who called first. Absent: nobody has forwarded or transferred the call. */
  readonly firstCaller?: KnownFirstCaller | undefined
}

/** The SIP server replaces this host by its own address, also in P-Asserted-Identity. */
const OWN_HOST = 'localhost'

export function inviteFor(
  candidate: Callee,
  invite: OutgoingCall,
  filter: HeaderFilter,
  isOneOfSeveral = false,
  facts: DialFacts = nobody,
): OutgoingInvite {
  const outgoing = composeInvite(candidate, invite, filter, isOneOfSeveral)
  if (invite.checked && candidate.kind !== 'application')
    markChecked(outgoing.headers, invite.checked)
  const names = 'stripHeaders' in candidate ? candidate.stripHeaders : undefined
  const stripped = names
    ? { ...outgoing, headers: withoutHeaders(outgoing.headers, names) }
    : outgoing
  if (candidate.kind !== 'gateway' || candidate.headerRules === undefined) return stripped
  const ruled = applyHeaderRules(candidate.headerRules, stripped, {
    ...facts,
    ownHost: filter.ownHost,
    callUuid: invite.callUuid,
    carrier: candidate.carrierName,
    rn: numbersOf(candidate, invite)?.rn,
  })
  return { ...stripped, ...ruled }
}

/** Facts of a call for the rules of carriers, beside its INVITE. */
export type DialFacts = Pick<RuleFacts, 'caller' | 'called' | 'customerId' | 'tags'>

const nobody: DialFacts = { caller: '', called: '', customerId: null }

function composeInvite(
  candidate: Callee,
  invite: OutgoingCall,
  filter: HeaderFilter,
  isOneOfSeveral: boolean,
): OutgoingInvite {
  const headers = filter.invite(invite.headers)
  if (invite.added) replaceHeaders(headers, invite.added)
  advertiseReplaces(headers)
  headers['Max-Forwards'] = String(invite.hopsLeft)
  headers['From'] = formatNameAddr(
    invite.from.name,
    callerUri(invite.from.user, hostOf(invite.from)),
  )
  // Names of our own users are not shown outside.
  const isOutside = candidate.kind === 'gateway' || candidate.kind === 'domain'
  if (invite.referredBy && !isOutside) headers['Referred-By'] = addressOf(invite.referredBy)
  // An offer in a reliable 18x would have to be answered in the PRACK, which we send without body.
  if (invite.body === undefined || isOneOfSeveral) withoutReliability(headers)
  if (candidate.kind === 'phone' || candidate.kind === 'voicemail')
    return insideInvite(candidate, invite, headers)
  if (candidate.kind === 'agent') return namedInvite(candidate.uri, candidate.uri, invite, headers)
  if (candidate.kind === 'spy')
    return namedInvite(candidate.uri, candidate.nextHop, invite, headers)
  if (candidate.kind === 'listener')
    return { uri: candidate.uri, nextHop: undefined, headers, credentials: undefined }
  if (candidate.kind === 'other-node') return replacingInvite(candidate, invite, headers)
  if (candidate.kind === 'application') return askingInvite(candidate, invite, headers)
  if (candidate.kind === 'domain') {
    if (wantsPrivacy(invite)) hideIdentities(headers)
    presentDecided(invite, {}, filter, headers)
    const place = candidate.uri.slice('sip:'.length)
    const [host = ''] = place.split(';', 1)
    const uri = invite.calledUser === '' ? candidate.uri : `sip:${invite.calledUser}@${place}`
    headers['To'] =
      invite.calledUser === '' ? `<sip:${host}>` : `<sip:${invite.calledUser}@${host}>`
    return { uri, nextHop: candidate.uri, headers, credentials: undefined }
  }
  if (candidate.kind === 'gateway') signedElsewhere(candidate, headers)
  if (candidate.kind === 'node') headers[CALL_UUID] = invite.callUuid
  else if (!presentDecided(invite, candidate, filter, headers))
    presentCaller(candidate, invite, headers)

  const user = candidate.kind === 'node' ? invite.calledUser : escapeUser(candidate.number)
  const address = `${user}@${candidate.uri.slice('sip:'.length)}`
  const parameters = address.indexOf(';')
  headers['To'] = `<sip:${parameters === -1 ? address : address.slice(0, parameters)}>`
  if (candidate.kind === 'node')
    return { uri: `sip:${address}`, nextHop: candidate.uri, headers, credentials: undefined }
  const credentials = credentialsOf(candidate)
  const uri = withParameters(`sip:${address}`, user, numbersOf(candidate, invite))
  return { uri, nextHop: candidate.uri, headers, credentials }
}

/** A redirect server says what stands beside the number that it has given. */
const numbersOf = (
  { redirected }: GatewayCandidate,
  invite: OutgoingCall,
): Pick<NumberParameters, 'text' | 'rn'> | undefined =>
  redirected === undefined ? parametersFor(invite) : redirected.parameters

/** The signatures of a redirect server are about its number and its time, not the caller's. */
function signedElsewhere({ redirected }: GatewayCandidate, headers: Headers): void {
  if (redirected?.identity === undefined) return
  headers['identity'] = redirected.identity
  delete headers['date']
}

/** RFC 3261 §19.1.6: parameters stand behind the number, and `user=phone` says that it is one. */
const withParameters = (
  uri: string,
  user: string,
  ported: Pick<NumberParameters, 'text'> | undefined,
): string =>
  ported === undefined
    ? uri
    : `sip:${user}${ported.text}${uri.slice('sip:'.length + user.length)};user=phone`

/** The INVITE to an agent or a PBX, with our call UUID, by which the API finds the call. */
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
  { uri: nextHop, replaces, token }: OtherInstanceCandidate,
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

/** To the application of the operator: it reads the INVITE as it was received. */
function askingInvite(
  { nextHop, secret }: ApplicationCandidate,
  { received, callUuid, calledUser }: OutgoingCall,
  shown: Headers,
): OutgoingInvite {
  const headers = received ? onlyOfTheWay(shown) : shown
  const { 'call-id': callId, from, to } = received?.headers ?? {}
  const uri = `sip:${calledUser}@${received?.host || OWN_HOST}`
  if (received) headers[ORIGINAL_INVITE] = writeOriginal(received)
  if (callId !== undefined) headers['Call-ID'] = callId
  if (from !== undefined) headers['From'] = withoutTag(from)
  headers['To'] = to ?? `<${uri}>`
  headers[CALL_UUID] = callUuid
  headers[APPLICATION_SECRET] = secret
  return { uri, nextHop, headers, credentials: undefined }
}

/** The server gives each leg a tag of its own. */
const withoutTag = (from: string): string => from.replace(/;\s*tag=[^;,\s]*/i, '')

/**
 * To a phone, or to the voicemail of one: both know the caller in its domain, if it has one, or
 * else in their own.
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
    if (invite.alerts !== 'all' && invite.alerts?.includes(candidate.tenantId) !== true)
      withoutAlerts(headers)
    if (wantsPrivacy(invite)) hideIdentities(headers)
    if (candidate.routes.length > 0) headers['Route'] = candidate.routes.join(', ')
    return { uri, nextHop: candidate.nextHop, headers, credentials: undefined }
  }
  // RFC 5806: how the mailbox is found.
  headers['diversion'] = `${callee};reason=no-answer`
  headers[CALL_UUID] = invite.callUuid
  return { uri, nextHop: uri, headers, credentials: undefined }
}

function hideIdentities(headers: Headers): void {
  delete headers['p-asserted-identity']
  delete headers['remote-party-id']
}

/** Writes what the rules of the caller's identity say. False: that is left to `caller_id`. */
function presentDecided(
  { identity, calledUser }: OutgoingCall,
  gateway: Partial<Pick<GatewayCandidate, 'callerId' | 'auth' | 'number'>>,
  filter: HeaderFilter,
  headers: Headers,
): boolean {
  if (identity === undefined) return false
  const calledNumber = gateway.number ?? calledUser
  const { callerId, auth } = gateway
  const { ownHost } = filter
  presentIdentity(identity, { callerId, auth, calledNumber, ownHost }, headers)
  return gateway.callerId?.mode !== 'fixed'
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
  { from, headers: received }: OutgoingCall,
  headers: Headers,
) {
  const asserted = numberedPartyOf(received['p-asserted-identity'] ?? '').user
  const claimed = isAnonymous(from) ? '' : from.user
  const number = value === null ? asserted || claimed : escapeUser(value)
  if (number === '') delete headers['p-asserted-identity']
  else headers['p-asserted-identity'] = formatNameAddr('', callerUri(number, OWN_HOST))
}

/** Undefined: the carrier knows us by our address. */
export function credentialsOf({ auth }: Pick<GatewayCandidate, 'auth'>): DigestLogin | undefined {
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

// Withholds INVITEs: to a carrier without a price, for `sips:` without TLS, and too large ones for
// another instance.

/** The carrier at whose gateway a request with this next hop would arrive; undefined: at none. */
export type GatewayBehind = (uri: string, sender: Sender) => string | undefined

interface WithheldReason {
  /** The reason, for the call record. */
  readonly why: string
  /** The end that the caller gets if no other destination is left. */
  readonly end: CallRefusal
}

/** Returns why the INVITE must not be sent. Undefined: it may be sent. */
export function withheld(
  candidate: Callee,
  outgoing: Pick<OutgoingInvite, 'uri' | 'nextHop' | 'headers'>,
  invite: Pick<OutgoingCall, 'isSecure' | 'body'>,
  gatewayBehind: GatewayBehind,
): WithheldReason | undefined {
  const { uri, nextHop } = outgoing
  const route = candidate.kind === 'phone' ? candidate.routes[0] : undefined
  const hop = nextHop ?? route ?? uri
  // The application is in this process.
  const isOutside = candidate.kind !== 'application'
  const isSecure = isOutside && (invite.isSecure === true || /^sips:/i.test(uri))
  if (isSecure && !isByTls(hop)) return { why: 'sips needs TLS', end: insecure }
  if ('holder' in candidate && isTooLarge(outgoing.headers, invite.body))
    return { why: 'too large for another node', end: tooLarge }
  const carrier = unpricedCarrier(candidate, hop, uri, gatewayBehind)
  if (carrier === undefined) return undefined
  // A tenant reads the record: it does not name another tenant's carrier.
  return { why: "leads to a carrier's gateway", end: unpriced }
}

/** A carrier's gateway is reached by priced routes only (SPECIFICATION.md §10.2). */
function unpricedCarrier(
  candidate: Callee,
  hop: string,
  uri: string,
  gatewayBehind: GatewayBehind,
): string | undefined {
  switch (candidate.kind) {
    case 'gateway':
    case 'listener':
    case 'other-node':
    case 'application':
      return undefined
    case 'phone':
      return gatewayBehindPhone(candidate, candidate.tenantId, gatewayBehind)
    case 'spy':
      // The node of a call sends on what a supervisor's URI names.
      return firstGateway([hop, uri], candidate.tenantId, gatewayBehind)
    case 'node':
    case 'agent':
    case 'voicemail':
    case 'domain':
    default:
      return firstGateway([hop], candidate.tenantId, gatewayBehind)
  }
}

/**
 * The carrier at whose gateway a request for a phone could arrive. The first proxy of a Path sends
 * it on to the next one, the last one to the Contact: the phone has chosen all of them but the
 * first.
 */
export function gatewayBehindPhone(
  { uri, routes, nextHop, lastHop }: Pick<PhoneCandidate, 'uri' | 'routes' | 'nextHop' | 'lastHop'>,
  tenantId: number,
  gatewayBehind: GatewayBehind,
): string | undefined {
  const onward = nextHop ?? lastHop
  const hops = onward !== undefined ? [onward] : [...routes, uri]
  return firstGateway(hops, tenantId, gatewayBehind)
}

function firstGateway(
  hops: readonly string[],
  tenantId: number | null,
  gatewayBehind: GatewayBehind,
): string | undefined {
  const sender = senderOf(tenantId)
  for (const hop of hops) {
    const carrier = gatewayBehind(hop, sender)
    if (carrier !== undefined) return carrier
  }
  return undefined
}

function isByTls(hop: string): boolean {
  const target = sipTarget(hop)
  return target?.isSecure === true || target?.transport === 'tls' || target?.transport === 'wss'
}

/**
 * For messages between instances. All of their calls share a few connections, and a message that
 * the other instance cannot read ends such a connection (64 kB, to which each instance adds headers
 * of its own).
 */
const MAX_BYTES = 16_384
/** Counts bytes only if the number of characters comes near the limit. */
const isTooLarge = (headers: Headers, body = ''): boolean => {
  let characters = body.length
  for (const name in headers) characters += name.length + (headers[name]?.length ?? 0)
  if (characters * 3 <= MAX_BYTES) return false
  return Buffer.byteLength(JSON.stringify(headers) + body) > MAX_BYTES
}

/** RFC 3261 §21.5.7. */
const tooLarge = refused(513, 'Message Too Large', 'message_too_large')

/**
 * The caller gets the same in both cases: by its Contact a phone shall not learn where gateways
 * are.
 */
export const withoutPhone = ({
  leadsToGateway,
}: {
  readonly leadsToGateway?: true
}): CallRefusal => {
  const code = leadsToGateway === true ? 'unpriced_gateway' : 'extension_unregistered'
  return refused(480, 'Temporarily Unavailable', code)
}

const unpriced = refused(403, 'Forbidden', 'unpriced_gateway')

/** RFC 5630 §6.1. */
const insecure = refused(480, 'Temporarily Unavailable', 'sips_needs_tls', {
  Warning: '380 tollgate "SIPS Not Allowed"',
})

/**
 * Without relays: nobody would hear an offer of the other IP version. The text is parsed only where
 * it may be one.
 */
export function withheldByVersion(
  candidate: Callee,
  { body = '' }: Pick<OutgoingCall, 'body'>,
): WithheldReason | undefined {
  const family = familyOf(candidate)
  if (family === undefined || body === '') return undefined
  if (!body.includes('IN IP6 ') || !areApart(familiesIn(body), [family])) return undefined
  return { why: 'no common IP version', end: apart }
}

/** RFC 6157 §4.2. */
const apart = refused(488, 'Not Acceptable Here', 'no_common_ip_version')

/**
 * The IP version of the media of a party, as far as the address by which it is called tells: who is
 * called by IPv6 nearly always has IPv4, too. Undefined: so it is, a name leads to it, others pass
 * the call on, or it is a browser.
 */
export function familyOf(callee: Callee): Family | undefined {
  switch (callee.kind) {
    case 'node':
    case 'gateway':
    case 'agent':
    case 'voicemail':
      return familyIn(callee.uri)
    case 'phone': {
      const isDirect = callee.routes.length === 0 && callee.isOnWebSocket !== true
      return isDirect ? familyIn(callee.nextHop ?? callee.uri) : undefined
    }
    case 'spy':
    case 'listener':
    case 'domain':
    case 'other-node':
    case 'application':
    default:
      return undefined
  }
}

const ipv4Uri = /^sips?:(?:[^@]*@)?(?:\d{1,3}\.){3}\d{1,3}(?![\w.-])/i

const familyIn = (uri: string): Family | undefined => (ipv4Uri.test(uri) ? 'IP4' : undefined)
