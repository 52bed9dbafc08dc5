/**
 * Call forwarding by a phone's 3xx. Inside a tenant the same call is routed again. To the outside a
 * call of its own is dialled, on the account of the extension that forwards: each has its own
 * record, payer and leg, and both end together, as after a transfer.
 */
import { isIP } from 'node:net'
import type { CallDeps } from './call-deps.ts'
import { askInvite } from './hooks/ask-invite.ts'
import type { Forward, LiveCall } from './call-machine/state.ts'
import {
  admitAndDial,
  closedBy,
  isRefusedEmergency,
  onFault,
  originOf,
  planCall,
  refuse,
} from './inbound/admission.ts'
import { type ExtensionDestination, innerRoute, type RouteDeps } from './inbound/route.ts'
import { type IncomingInvite, startOf } from './inbound/incoming-invite.ts'
import { forwardedCaller } from './identity/first-caller.ts'
import type { Headers } from './signalling.ts'
import { calledOf, domainOf } from './sip-headers.ts'
import type { ExtensionOrigin } from '../routing/routing.ts'
import {
  escapeUser,
  headerNamed,
  noParams,
  parseNameAddr,
  qValueOf,
  readAddress,
  splitList,
  withoutBrackets,
} from '../../schema/sip/index.ts'

/** How often one call may be forwarded. */
const MAX_FORWARDS = 5
/** A call forwarded to the outside may come back by a carrier that counts no hops. */
const MAX_UNANSWERED = 10

/**
 * Returns the forward that a 3xx of an extension's phone asks for. Undefined: it is not followed.
 */
export function forwardBy(call: LiveCall, headers: Headers, deps: CallDeps): Forward | undefined {
  const { dialing } = call
  const { current } = dialing ?? {}
  if (dialing === undefined || current?.kind !== 'extension') return undefined
  const { invite } = dialing
  const visited = [...dialing.visited, current.uri]
  const forwarding = dialledBy(forwardingOf(headers), deps)
  const origin = extensionIn(current, deps)
  const isFar = visited.length > MAX_FORWARDS || invite.hopsLeft < 1
  if (forwarding === undefined || origin === undefined || isFar) return undefined
  const forwarded = forwardedInvite(invite, current.uri, origin, forwarding)
  // The caller has no emergency, and a phone must not flood an emergency number.
  if (isRefusedEmergency('forward', forwarded, deps)) return undefined
  const route = innerRoute(forwarded, deps)?.route
  if (route?.kind === 'refused') return undefined
  if (route) {
    const isLoop = route.candidates.some((candidate) => visited.includes(candidate.uri))
    return isLoop ? undefined : { invite: { ...forwarded, origin: invite.origin }, route }
  }
  const { calls } = deps
  const mayGoOut =
    call.start.isOurs !== true &&
    invite.body !== undefined &&
    closedBy(calls) === undefined &&
    calls.countForwarding(current.uri) < MAX_UNANSWERED
  return mayGoOut ? { invite: forwarded, route: undefined } : undefined
}

function dialledBy(
  forwarding: Forwarding | undefined,
  { routing }: RouteDeps,
): Forwarding | undefined {
  if (forwarding === undefined) return undefined
  const number = routing.dialledNumber(forwarding.number)
  return number === forwarding.number
    ? forwarding
    : { ...forwarding, number, user: escapeUser(number) }
}

function extensionIn(
  { uri }: ExtensionDestination,
  { registrar }: RouteDeps,
): ExtensionOrigin | undefined {
  const [number = '', home = ''] = uri.slice('sip:'.length).split('@')
  const record = registrar.extensionAt(home, number)
  return record && originOf(record)
}

/** The called party sees the first caller, and the forwarding extension in Diversion (RFC 5806). */
function forwardedInvite(
  invite: IncomingInvite,
  uri: string,
  origin: ExtensionOrigin,
  { number, user, domain, isSecure, reason }: Forwarding,
): IncomingInvite {
  return {
    ...invite,
    target: undefined,
    origin,
    calledNumber: number,
    calledUser: user,
    domain: domain || origin.domain,
    headers: divertedBy(uri, reason, invite.headers),
    isSecure: isSecure || invite.isSecure === true,
    hopsLeft: invite.hopsLeft - 1,
  }
}

/** Begins the call of the extension that forwards `call` to the outside. */
export function forwardOut(
  call: LiveCall,
  by: string,
  forwardInvite: IncomingInvite,
  deps: CallDeps,
): void {
  const { origin } = forwardInvite
  if (origin.kind !== 'extension') return
  const callUuid = deps.newUuid()
  const caller = { callerNumber: origin.extension, callerName: origin.displayName || null }
  // The headers that a hook has set are of the forwarded call.
  const firstCaller = forwardedCaller(forwardInvite, call.origin)
  const own = { callUuid, ...caller, firstCaller, ...ofReceived }
  const invite: IncomingInvite = { ...forwardInvite, ...own }
  const startedAt = deps.now()
  const forwarded = deps.calls.begin({
    start: { ...startOf(invite, 'forward', startedAt), isOurs: true },
    calling: { kind: 'forwarded', callUuid: call.start.callUuid },
    near: call.near,
    callerPeer: call.peers.caller,
    payerTenantId: origin.tenantId,
    forwardedBy: by,
  })
  const destination = `sip:${invite.calledUser}@${invite.domain}`
  const to = { callUuid, destination, startedAt }
  deps.dispatch({ type: 'forwardStarted', callUuid: call.start.callUuid, to })
  void dialForward(forwarded, invite, deps).catch(onFault(forwarded, deps))
}

/** Facts of the received INVITE, which is the other call's. */
const ofReceived = { added: undefined, ruled: undefined }

async function dialForward(call: LiveCall, invite: IncomingInvite, deps: CallDeps): Promise<void> {
  const asking = askInvite(call, invite, { kind: 'forward' }, deps)
  const asked = asking && (await asking)
  if (asked?.kind === 'ended') return refuse(call, asked.end, deps)
  const decided = asked?.invite ?? invite
  await admitAndDial(call, decided, planCall('forward', decided, deps), deps)
}

/** The target of a forward. */
export interface Forwarding {
  /** The number in normal form. */
  readonly number: string
  /** The number as user part of a URI. */
  readonly user: string
  /** The domain without port. Empty if the phone names an address, which may be its own. */
  readonly domain: string
  /** The target is a `sips:` URI. */
  readonly isSecure: boolean
  /** RFC 5806: why. */
  readonly reason: string
}

/** Undefined: it names no number. Of several targets the preferred one is meant. */
export function forwardingOf(headers: Headers): Forwarding | undefined {
  const targets = splitList(headers['contact'] ?? '')
    .slice(0, MAX_TARGETS)
    .map(targetIn)
  const [preferred] = targets.toSorted((a, b) => b.q - a.q)
  const { number, user, host, irregular } = calledOf(preferred?.uri ?? '')
  const name = domainOf({ host })
  const domain = isIP(withoutBrackets(name)) === 0 ? name : ''
  const isSecure = /^sips:/i.test(preferred?.uri ?? '')
  const isNumber = number !== '' && irregular === undefined
  return isNumber ? { number, user, domain, isSecure, reason: reasonOf(headers) } : undefined
}

/** More in one answer are not read. */
const MAX_TARGETS = 16

/** One target of a Contact, as `sip:` or `tel:` URI, and its preference. */
function targetIn(value: string): { readonly uri: string; readonly q: number } {
  return {
    uri: readAddress(value).uri.trim(),
    q: qValueOf(parseNameAddr(value) ?? { params: noParams }),
  }
}

/** RFC 5806 §4: the reasons that a phone may name. */
const reasons = new Set([
  'user-busy',
  'no-answer',
  'unavailable',
  'unconditional',
  'time-of-day',
  'do-not-disturb',
  'deflection',
  'follow-me',
  'out-of-service',
  'away',
])

function reasonOf(headers: Headers): string {
  // The latest diversion stands first; a name may have what looks like a reason.
  const [latest = ''] = splitList(headerNamed(headers, 'diversion') ?? '')
  const params = latest.slice(latest.lastIndexOf('>') + 1)
  const reason = /;\s*reason\s*=\s*"?([\w-]+)/i.exec(params)?.[1] ?? ''
  return reasons.has(reason.toLowerCase()) ? reason.toLowerCase() : 'unknown'
}

/** Adds a Diversion, the latest first (RFC 5806 §4). */
function divertedBy(extension: string, reason: string, headers: Headers): Headers {
  const before = headerNamed(headers, 'diversion')
  const others: Headers = {}
  for (const name in headers)
    if (name.toLowerCase() !== 'diversion') others[name] = headers[name] ?? ''
  const own = `<${extension}>;reason=${reason}`
  return { ...others, diversion: before === undefined ? own : `${own}, ${before}` }
}
