/**
 * Changes the bindings of one extension by a REGISTER: RFC 3261 §10.3 steps 6 to 8. Pure: the
 * present bindings and a request go in, the new ones or a refusal come out.
 */
import { type Contact, type Contacts, isSameUri, contactUri } from './contact.ts'
import { detachString, hostPort } from '../../schema/sip/index.ts'
import { isHiddenFrom } from '../../schema/net/ip-address.ts'

/** The source of a REGISTER: calls go back that way. */
export interface BindingSource {
  /** `udp`, `tcp`, `tls`, `ws` or `wss`. */
  readonly protocol: string
  /** IPv6 without brackets. */
  readonly address: string
  readonly port: number
}

export interface Binding {
  readonly contact: string
  readonly instance: string | null
  readonly regId: number | null
  /** Thousandths. */
  readonly q: number
  readonly callId: string
  readonly cseq: number
  /** RFC 3327: the proxies on the way to the phone, ours first. */
  readonly path: readonly string[]
  readonly userAgent: string
  readonly source: BindingSource
  /**
   * The instance that has the way to the phone: the connection, or the socket that a NAT lets
   * answer.
   */
  readonly holder: string
  /** Milliseconds UTC, of the last REGISTER. */
  readonly registeredAt: number
  readonly expiresAt: number
}

/** One REGISTER whose sender is known. */
export interface Registration {
  readonly contacts: Contacts
  /** The `Expires` header in seconds; undefined: none, or unreadable. */
  readonly expiresSeconds: number | undefined
  readonly callId: string
  readonly cseq: number
  readonly path: readonly string[]
  /** RFC 3327 §5.3: the phone understands a Path in its answer. */
  readonly knowsPath: boolean
  readonly userAgent: string
  readonly source: BindingSource
  /** The instance that has taken the REGISTER. */
  readonly holder: string
}

interface BindingLimits {
  readonly defaultSeconds: number
  readonly minSeconds: number
  readonly maxSeconds: number
  readonly maxBindings: number
}

/**
 * Instances that share a database get no notice of a usual refresh: they read a binding of another
 * instance again so long before it expires by their own clocks. Of a later refresh they get a
 * notice, as of a change.
 */
export const CHECK_AHEAD_MS = 5_000
const ANNOUNCED_REFRESH_MS = CHECK_AHEAD_MS + 2_000

/** SPECIFICATION.md §12.1. */
export const bindingLimits: BindingLimits = {
  defaultSeconds: 3_600,
  minSeconds: 60,
  maxSeconds: 7_200,
  maxBindings: 5,
}

type RegistrationResult =
  | {
      readonly kind: 'accepted'
      /** All that are there afterwards. */
      readonly bindings: readonly Binding[]
      /** New and changed bindings. */
      readonly saved: readonly Binding[]
      /** Bindings with new CSeq and times alone. */
      readonly refreshed: readonly Binding[]
      /** Contact URIs of those that are gone, as they were stored. */
      readonly removed: readonly string[]
    }
  | {
      readonly kind: 'refused'
      readonly status: number
      readonly reason: string
      readonly headers: Readonly<Record<string, string>>
    }

/**
 * `isReachable`: whether a binding leads to a phone now; one that does not makes room for others
 * first.
 */
export function register(
  present: readonly Binding[],
  request: Registration,
  now: number,
  limits: BindingLimits,
  isReachable: (binding: Binding) => boolean = () => true,
): RegistrationResult {
  const living = present.filter(({ expiresAt }) => expiresAt > now)
  switch (request.contacts.kind) {
    case 'none':
      return { kind: 'accepted', bindings: living, ...nothing }
    case 'all':
      return unregisterAll(living, request)
    case 'list':
      return update(living, request.contacts.contacts, request, { now, limits, isReachable })
    case 'unreadable':
    default:
      return refused(400, 'Bad Contact Header')
  }
}

/** `Contact: *` stands alone and only with `Expires: 0`. */
function unregisterAll(living: readonly Binding[], request: Registration): RegistrationResult {
  if (request.expiresSeconds !== 0) return refused(400, 'Bad Contact Header')
  if (living.some((binding) => isOutOfOrder(binding, request))) return outOfOrder
  return {
    kind: 'accepted',
    ...nothing,
    bindings: [],
    removed: living.map(({ contact }) => contact),
  }
}

function update(
  living: readonly Binding[],
  contacts: readonly Contact[],
  request: Registration,
  { now, limits, isReachable }: UpdateRules,
): RegistrationResult {
  let bindings = living
  const saved: Binding[] = []
  const refreshed: Binding[] = []
  const removed = new Set<string>()
  for (const contact of contacts) {
    const wanted = contact.expiresSeconds ?? request.expiresSeconds ?? limits.defaultSeconds
    if (wanted > 0 && wanted < limits.minSeconds) return tooBrief(limits)
    // The last one of two equal URIs in one request counts.
    const replaced = bindings.filter((binding) =>
      living.includes(binding)
        ? isSameBinding(binding, contact)
        : isSameUri(binding.contact, contact.uri),
    )
    if (replaced.some((binding) => living.includes(binding) && isOutOfOrder(binding, request)))
      return outOfOrder
    bindings = bindings.filter((binding) => !replaced.includes(binding))
    for (const binding of replaced) removed.add(binding.contact)
    if (wanted === 0) continue
    const granted = Math.min(wanted, limits.maxSeconds)
    const fresh = bindingOf(contact, request, now, now + granted * 1_000)
    const known = replaced.length === 1 ? replaced.find((each) => livesOn(each, fresh)) : undefined
    const binding = known ? renewed(known, fresh) : detachedBinding(fresh)
    bindings = [...bindings, binding]
    if (known) refreshed.push(binding)
    else saved.push(binding)
    removed.delete(binding.contact)
  }
  // Those of one request have no order: none of them is the one that is not meant.
  const fresh = bindings.filter((binding) => !living.includes(binding))
  if (fresh.length > limits.maxBindings) return refused(403, 'Too Many Contacts')
  const before = bindings.filter((binding) => living.includes(binding))
  const kept = lastOf(before, limits.maxBindings - fresh.length, isReachable)
  for (const { contact } of before.filter((binding) => !kept.includes(binding)))
    removed.add(contact)
  bindings = bindings.filter((binding) => !before.includes(binding) || kept.includes(binding))
  return {
    kind: 'accepted',
    bindings,
    saved: saved.filter((binding) => bindings.includes(binding)),
    refreshed: refreshed.filter((binding) => bindings.includes(binding)),
    removed: [...removed],
  }
}

interface UpdateRules {
  readonly now: number
  readonly limits: BindingLimits
  readonly isReachable: (binding: Binding) => boolean
}

/**
 * RFC 3261 §10.3 leaves it to us how many there may be. The phone that is here now must work, so an
 * older binding makes room for it: first one that leads to no phone any more, then the one that was
 * refreshed the longest time ago.
 */
function lastOf(
  bindings: readonly Binding[],
  room: number,
  isReachable: (binding: Binding) => boolean,
): readonly Binding[] {
  if (bindings.length <= room) return bindings
  const rank = (binding: Binding): number => (isReachable(binding) ? 1 : 0)
  return bindings
    .toSorted((a, b) => rank(b) - rank(a) || b.registeredAt - a.registeredAt)
    .slice(0, room)
}

/** The same address, or the same phone under a new one (RFC 5626 §4.1, §6). */
const isSameBinding = (binding: Binding, contact: Contact): boolean =>
  isSameUri(binding.contact, contact.uri) ||
  (contact.instance !== null &&
    binding.instance === contact.instance &&
    binding.regId === contact.regId)

/** An older REGISTER of the same phone that was overtaken; the phone counts up from one Call-ID. */
const isOutOfOrder = (binding: Binding, request: Registration): boolean =>
  binding.callId === request.callId && request.cseq <= binding.cseq

/** Whether nothing but number and times differs. */
const livesOn = (known: Binding, binding: Binding): boolean =>
  known.expiresAt - binding.registeredAt > ANNOUNCED_REFRESH_MS &&
  known.holder === binding.holder &&
  known.contact === binding.contact &&
  known.instance === binding.instance &&
  known.regId === binding.regId &&
  known.q === binding.q &&
  known.callId === binding.callId &&
  known.userAgent === binding.userAgent &&
  known.source.port === binding.source.port &&
  known.source.address === binding.source.address &&
  known.source.protocol === binding.source.protocol &&
  known.path.length === binding.path.length &&
  known.path.every((proxy, index) => proxy === binding.path[index])

function bindingOf(
  { uri, instance, regId, q }: Contact,
  { callId, cseq, path, userAgent, source, holder }: Registration,
  registeredAt: number,
  expiresAt: number,
): Binding {
  return {
    contact: uri,
    instance,
    regId,
    q,
    callId,
    cseq,
    path,
    userAgent,
    source,
    holder,
    registeredAt,
    expiresAt,
  }
}

const nothing = { saved: [], refreshed: [], removed: [] } as const

const renewed = (known: Binding, { cseq, registeredAt, expiresAt }: Binding): Binding => ({
  ...known,
  cseq,
  registeredAt,
  expiresAt,
})

/** A copy whose texts do not keep the request in memory. */
function detachedBinding(binding: Binding): Binding {
  const { contact, instance, callId, path, userAgent } = binding
  return {
    ...binding,
    contact: detachString(contact),
    instance: instance === null ? null : detachString(instance),
    callId: detachString(callId),
    path: path.map(detachString),
    userAgent: detachString(userAgent),
  }
}

function refused(
  status: number,
  reason: string,
  headers: Readonly<Record<string, string>> = {},
): RegistrationResult {
  return { kind: 'refused', status, reason, headers }
}

const tooBrief = ({ minSeconds }: BindingLimits): RegistrationResult =>
  refused(423, 'Interval Too Brief', { 'Min-Expires': String(minSeconds) })

/** The RFC gives no status; 500 is what §12.2.2 says for the same in a dialog. */
const outOfOrder: RegistrationResult = refused(500, 'Out Of Order')

// How a call reaches a registered phone. Pure.

/** One phone of an extension, as a call to it is addressed. */
export interface ContactTarget {
  /** The Request-URI: what the phone registered (RFC 3261 §16.5). */
  readonly uri: string
  /** `Route` values, the first one next (RFC 3327 §5.3); none without Path. */
  readonly routes: readonly string[]
  /**
   * Where to send, as a SIP URI, when that is neither in the routes nor in the Request-URI: the
   * address that the phone's REGISTER came from, or the connection on which it came.
   */
  readonly nextHop: string | undefined
  /**
   * The URI to which another instance forwards requests by `routes`; absent: the routes are those
   * of its Path.
   */
  readonly lastHop?: string
  /** The name of that instance, and its run. */
  readonly holder?: string
  readonly holderRun?: number
  /** Thousandths; higher is preferred. */
  readonly q: number
  readonly source: BindingSource
  readonly isOnWebSocket?: true
  /**
   * The source address of its REGISTER, when its Contact names another, private address; none
   * behind a proxy.
   */
  readonly natAddress?: string
}

export function targetOf(binding: Binding): ContactTarget {
  const { contact: uri, path: routes, q, source } = binding
  const isDirect = routes.length === 0 && isReachedByContact(binding)
  const nextHop = routes.length > 0 || isDirect ? undefined : uriOf(source)
  return { uri, routes, nextHop, q, source, ...mediaOf(binding) }
}

/** The facts of a binding that decide how media flows. */
function mediaOf({
  contact,
  path,
  source,
}: Binding): Pick<ContactTarget, 'isOnWebSocket' | 'natAddress'> {
  if (source.protocol.startsWith('ws')) return { isOnWebSocket: true }
  const host = contactUri(contact)?.host
  const isHidden = path.length === 0 && host !== undefined && isHiddenFrom(host, source.address)
  return isHidden ? { natAddress: source.address } : {}
}

/** A phone on a stream: reached by the connection that it has registered over, and by no other. */
export const isBoundToConnection = ({ path, source }: Pick<Binding, 'path' | 'source'>): boolean =>
  path.length === 0 && source.protocol !== 'udp'

/** A phone behind NAT, by UDP: only its own packets keep the way to it open. */
export const needsKeepAlive = (binding: Binding): boolean =>
  binding.path.length === 0 && binding.source.protocol === 'udp' && !isReachedByContact(binding)

/** By UDP from the very address that the Contact names. A stream is always used again. */
export function isReachedByContact({ contact, source }: Binding): boolean {
  if (source.protocol !== 'udp') return false
  const uri = contactUri(contact)
  if (uri === undefined || uri.scheme === 'sips') return false
  // RFC 3261 §19.1.1: it would be sent to another host than the one that has registered.
  if (uri.params.has('maddr')) return false
  const transport = uri.params.get('transport')?.toLowerCase() ?? 'udp'
  const port = uri.port === 0 ? 5_060 : uri.port
  const isSameHost = uri.host.toLowerCase() === source.address.toLowerCase()
  return transport === 'udp' && isSameHost && port === source.port
}

/**
 * A stream is called over the connection that the phone registered on, or not at all: the port that
 * it came from is not listened on. (A real drachtio-server does not know that parameter, and
 * tries.)
 */
export function uriOf({ protocol, address, port }: BindingSource): string {
  const way = protocol === 'udp' ? '' : ';connection=registered'
  return `sip:${hostPort(address, port)};transport=${protocol}${way}`
}
