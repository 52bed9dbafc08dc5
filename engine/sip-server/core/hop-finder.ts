/**
 * Finds the next hop of a request: the connection that its target has registered over, an address,
 * or the addresses that DNS has for a name (RFC 3263). Targets that failed lately are tried last.
 */
import { isIP } from 'node:net'
import { bareUri } from '../dialog/dialog.ts'
import {
  defaultPort,
  isNamed,
  isWebSocket,
  sideFor,
  type Flow,
  type HopQuestion,
  type HopTarget,
  type Listener,
} from '../flow.ts'
import {
  type Protocol,
  byteLength,
  detachString,
  type SipMessage,
} from '../../../schema/sip/message.ts'
import { hostPort, parseUri } from '../../../schema/sip/fields.ts'
import { isNoHost } from '../../../schema/sip/no-host.ts'
import type { Identifiers } from './identifiers.ts'
import type { Outbox } from './outbox.ts'
import type { ForwardTarget } from './proxy/forwarded-text.ts'
import type { RegistrationFlows } from './registration-flows.ts'

/** The next hop of a request that is not written yet. */
export interface NextHop {
  /** While there is a `question`, only the listener that the request would leave by. */
  readonly flow: Flow
  readonly question: HopQuestion | undefined
  /** The URI or Route that named it; '' where a connection did, and no other flow will do. */
  readonly target: string
}

export interface Problem {
  readonly problem: string
}

/** Called once, with the preferred flow first; without flows the target cannot be reached. */
type FlowsHandler = (flows: readonly Flow[], now: number) => void

/** RFC 3261 §18.1.1: where the path MTU is not known, larger requests need congestion control. */
const maxDatagramBytes = 1_300

/** A peer without TCP that drops instead of refusing delays a large request by this. */
const connectMs = 1_000

/** How long a target is avoided after it was silent or failed. */
const avoidMs = 30_000

/** Limit for the Retry-After of a 503. */
const maxRetryAfterMs = 300_000

/** How long TCP is avoided to a peer that refused it, when only the size had asked for it. */
const noTcpMs = 600_000

const maxAvoided = 1_000

export class HopFinder {
  readonly listeners: () => readonly Listener[]
  readonly #registrationFlows: RegistrationFlows
  readonly #outbox: Outbox
  readonly #ids: Identifiers
  /** Handlers that wait for the addresses of a host name, by reference. */
  readonly #resolving = new Map<string, (targets: readonly HopTarget[], now: number) => void>()
  /** Until when a target is avoided, the oldest entry first. */
  readonly #avoided = new Map<string, number>()

  constructor(
    listeners: () => readonly Listener[],
    registrationFlows: RegistrationFlows,
    outbox: Outbox,
    ids: Identifiers,
  ) {
    this.listeners = listeners
    this.#registrationFlows = registrationFlows
    this.#outbox = outbox
    this.#ids = ids
  }

  /** Finds the hop by the URI alone; `preferred` if several listeners serve it. */
  nextHop(target: string, preferred?: Listener): NextHop | Problem {
    const listeners = this.listeners()
    const hop = hopOf(target)
    if (hop === undefined) return { problem: `invalid request-uri: ${target}` }
    if (hop.isRegistered) {
      const flow = this.#registrationFlows.from(hop.protocol, hop.host, hop.port)
      return flow ? byConnection(flow) : { problem: 'the connection of the registration is closed' }
    }
    if (isNoHost(hop.host)) return { problem: `the address of no single host: ${hop.host}` }
    const listener = listenerFor(listeners, hop, preferred)
    if (listener === undefined) return { problem: 'requested protocol/transport not available' }
    if (isOwnAddress(listeners, hop.host, hop.port, listener.protocol))
      return { problem: 'can not send request to myself' }
    const question = questionOf(hop, listener.protocol, listeners)
    return { flow: flowTo(listener, hop.host, hop.port), question, target }
  }

  /** The connection that `uri` has registered over. */
  registered(uri: string): NextHop | undefined {
    const flow = this.#registrationFlows.find(uri)
    return flow && byConnection(flow)
  }

  /** Every flow to a target, now or after a look-up. */
  find({ hop: uri, isAddress, flow }: ForwardTarget, now: number, onFlows: FlowsHandler): void {
    if (flow) return onFlows([flow], now)
    const hop = (isAddress ? undefined : this.registered(uri)) ?? this.nextHop(uri)
    if ('problem' in hop) return onFlows([], now)
    if (hop.question === undefined) return onFlows([hop.flow], now)
    this.lookUp(hop.question, onFlows)
  }

  /** Looks a host name up; `onFlows` is called later. */
  lookUp(question: HopQuestion, onFlows: FlowsHandler): void {
    const reference = this.#ids.next()
    this.#resolving.set(reference, (targets, now) => {
      const flows = flowsTo(this.listeners(), question.host, targets)
      onFlows(this.#avoidedLast(flows, now), now)
    })
    this.#outbox.push({ kind: 'resolve', question, reference })
  }

  resolved(reference: string, targets: readonly HopTarget[], now: number): void {
    const onFlows = this.#resolving.get(reference)
    this.#resolving.delete(reference)
    onFlows?.(targets, now)
  }

  get resolving(): number {
    return this.#resolving.size
  }

  /**
   * §18.1.1: a large request tries TCP before UDP, unless the transport was asked for or TCP failed
   * lately.
   */
  tcpFirst(target: string, text: string, flows: readonly Flow[], now: number): readonly Flow[] {
    if (target === '' || !isLarge(text) || hopOf(target)?.isExplicit === true) return flows
    return flows.flatMap((flow) => [...this.#byTcp(flow, now), flow])
  }

  #byTcp({ listener, address, port }: Flow, now: number): readonly Flow[] {
    if (listener.protocol !== 'udp') return []
    const tcp = chooseListener(this.listeners(), 'tcp', address)
    if (tcp === undefined) return []
    const flow = { ...flowTo(tcp, address, port), connectMs }
    return this.#isAvoided(flow, now) ? [] : [flow]
  }

  /** The target behind `flow` was silent or failed, or has refused with 503 (RFC 3261 §21.5.4). */
  failed(flow: Flow, refusal: SipMessage | undefined, now: number): void {
    const key = keyOf(flow)
    this.#avoided.delete(key)
    const [oldest] = this.#avoided.keys()
    if (this.#avoided.size >= maxAvoided && oldest !== undefined) this.#avoided.delete(oldest)
    this.#avoided.set(key, avoidUntil(flow, refusal, now))
  }

  #isAvoided(flow: Flow, now: number): boolean {
    if (this.#avoided.size === 0) return false
    const key = keyOf(flow)
    const until = this.#avoided.get(key)
    if (until === undefined) return false
    if (until > now) return true
    this.#avoided.delete(key)
    return false
  }

  #avoidedLast(flows: readonly Flow[], now: number): readonly Flow[] {
    if (this.#avoided.size === 0 || flows.length < 2) return flows
    const isAvoided = (flow: Flow): boolean => this.#isAvoided(flow, now)
    return [...flows.filter((flow) => !isAvoided(flow)), ...flows.filter(isAvoided)]
  }
}

export const byConnection = (flow: Flow): NextHop => ({ flow, question: undefined, target: '' })

/**
 * The flows that lead elsewhere: a target that has said no would say it by another transport, too.
 */
export const elsewhere = (flows: readonly Flow[], { address, port }: Flow): readonly Flow[] =>
  flows.filter((other) => other.address !== address || other.port !== port)

function avoidUntil(flow: Flow, refusal: SipMessage | undefined, now: number): number {
  if (refusal === undefined) return now + (flow.connectMs === undefined ? avoidMs : noTcpMs)
  const seconds = Number.parseInt(refusal.get('Retry-After') ?? '0', 10)
  return now + Math.min(maxRetryAfterMs, (Number.isNaN(seconds) ? 0 : seconds) * 1_000)
}

/** Without `transport=` any listener is better than none (wire/README.md §5.1). */
function listenerFor(
  listeners: readonly Listener[],
  hop: Hop,
  preferred: Listener | undefined,
): Listener | undefined {
  const fits =
    preferred?.protocol === hop.protocol && isIP(preferred.address) === (isIP(hop.host) || 4)
  if (fits) return preferred
  const chosen = chooseListener(listeners, hop.protocol, hop.host)
  if (chosen !== undefined || hop.isExplicit) return chosen
  return listeners[0]
}

const isLarge = (text: string): boolean =>
  // Three bytes are the most that a UTF-16 unit takes.
  text.length * 3 > maxDatagramBytes && byteLength(text) > maxDatagramBytes

const keyOf = ({ listener, address, port }: Flow): string =>
  `${listener.protocol} ${address} ${port}`

export interface Hop {
  /** IP literal without brackets, or a host name. */
  readonly host: string
  readonly port: number
  readonly protocol: Protocol
  /** The port was given, not assumed: then no SRV record is asked (RFC 3263 §4.2). */
  readonly hasPort: boolean
  readonly isSecure: boolean
  /** `transport=` or `sips` was given, so no other transport will do. */
  readonly isExplicit: boolean
  /** `connection=registered`: by the connection that a phone has registered over, or not at all. */
  readonly isRegistered: boolean
}

const protocols: ReadonlySet<string> = new Set(['udp', 'tcp', 'tls', 'ws', 'wss'])

/**
 * The hop that a SIP URI, a Route value or a bare `host[:port]` names. Without `transport=` it is
 * UDP, as in drachtio-server; `sips` and `tls` default to port 5061 (RFC 3261 §19.1.2).
 */
export function hopOf(target: string): Hop | undefined {
  const text = bareUri(target)
  const uri = parseUri(/^(sips?|tel):/i.test(text) ? text : `sip:${text}`)
  if (uri === undefined || uri.host === '') return undefined
  const transport = uri.params.get('transport')?.toLowerCase()
  if (transport !== undefined && !protocols.has(transport)) return undefined
  const isSecure = uri.scheme === 'sips'
  const protocol =
    transport === undefined ? (isSecure ? 'tls' : 'udp') : secured(transport, isSecure)
  return {
    host: uri.params.get('maddr') ?? uri.host,
    port: uri.port === 0 ? defaultPort(protocol) : uri.port,
    protocol,
    hasPort: uri.port !== 0,
    isSecure,
    isExplicit: transport !== undefined || isSecure,
    isRegistered: uri.params.get('connection') === 'registered',
  }
}

/** RFC 3261 §26.2.2: `sips:…;transport=tcp` means TLS over TCP. */
function secured(transport: string, isSecure: boolean): Protocol {
  if (isSecure && transport === 'tcp') return 'tls'
  if (isSecure && transport === 'ws') return 'wss'
  // Checked against `protocols` by the caller.
  return transport as Protocol
}

/**
 * The listener from which `address` is reached: same protocol and family; among those the one in
 * whose local network it is, then the one that shares most leading octets with it. A host name that
 * is not looked up yet fits any family.
 */
function chooseListener(
  listeners: readonly Listener[],
  protocol: Protocol,
  address: string,
): Listener | undefined {
  const family = isIP(address)
  const fitting = listeners.filter(
    (listener) =>
      listener.protocol === protocol && (family === 0 || isIP(listener.address) === family),
  )
  const [first] = fitting
  if (first === undefined || family === 0) return first
  if (fitting.length === 1) return sideFor(first, address)
  const scores = fitting.map((listener) => nearness(listener, address))
  return sideFor(fitting[scores.indexOf(Math.max(...scores))] ?? first, address)
}

function nearness(listener: Listener, address: string): number {
  return listener.isLocal?.(address) === true ? 5 : sharedOctets(listener.address, address)
}

function sharedOctets(one: string, other: string): number {
  const a = one.split('.')
  const b = other.split('.')
  let shared = 0
  while (shared < a.length && a[shared] === b[shared]) shared += 1
  return shared
}

/** The look-up that a hop needs before a request can be sent there; undefined: none. */
function questionOf(
  hop: Hop,
  protocol: Protocol,
  listeners: readonly Listener[],
): HopQuestion | undefined {
  const { host, isSecure } = hop
  // A WebSocket is never opened: where its name leads does not matter.
  if (isIP(host) !== 0 || isWebSocket(protocol)) return undefined
  // `sips` says TLS, not where: its records are still asked.
  const hasTransport = hop.isExplicit && !(isSecure && protocol === 'tls')
  return {
    host,
    port: hop.hasPort ? hop.port : 0,
    protocol: hasTransport || hop.hasPort ? protocol : undefined,
    isSecure,
    supported: [...new Set(listeners.map((listener) => listener.protocol))],
  }
}

/**
 * The flows to the targets of `host`, without those that no listener serves and those that lead to
 * ourselves.
 */
function flowsTo(
  listeners: readonly Listener[],
  host: string,
  targets: readonly HopTarget[],
): Flow[] {
  const flows: Flow[] = []
  for (const { protocol, address, port } of targets) {
    const listener = chooseListener(listeners, protocol, address)
    if (listener === undefined || isNoHost(address)) continue
    if (isOwnAddress(listeners, address, port, protocol)) continue
    const flow = flowTo(listener, address, port)
    // RFC 5922 §7.2: a certificate shows the name of the URI, not that of an SRV record.
    flows.push(protocol === 'tls' || protocol === 'wss' ? { ...flow, hostName: host } : flow)
  }
  return flows
}

/** One of our own addresses: sending there would be a loop. */
export const isOwnAddress = (
  listeners: readonly Listener[],
  address: string,
  port: number,
  protocol: Protocol,
): boolean =>
  listeners.some(
    (listener) =>
      listener.protocol === protocol && listener.port === port && isNamed(listener, address),
  )

/** Whether a URI means one of them. */
export function namesOneOf(listeners: readonly Listener[], text: string): boolean {
  const uri = parseUri(text)
  if (uri === undefined || uri.scheme === 'tel') return false
  return listeners.some((own) => {
    const port = uri.port === 0 ? defaultPort(own.protocol) : uri.port
    return isNamed(own, uri.host) && (port === own.port || port === own.advertisedPort)
  })
}

export const flowTo = (listener: Listener, address: string, port: number): Flow => ({
  listener,
  address,
  port,
  connectionId: 0,
})

/** `host:port` as Via, Contact and placeholders show it. */
export function advertised(listener: Listener): string {
  const known = advertisedPlaces.get(listener)
  if (known !== undefined) return known
  const place = detachString(hostPort(listener.advertisedHost, listener.advertisedPort))
  advertisedPlaces.set(listener, place)
  return place
}

/** Every message names one or two of them. */
const advertisedPlaces = new WeakMap<Listener, string>()

/** The `transport` parameter of a URI that names this listener. */
export const transportParam = ({ protocol }: Listener): string =>
  protocol === 'udp' ? '' : `;transport=${protocol}`

/**
 * A URI by which this listener is reached. `isSecure`: what it is for was asked for with `sips`,
 * and must stay so (RFC 3261 §8.1.1.8, §12.1.1, §16.6 step 4), which says TLS by itself.
 */
export function ownUri(listener: Listener, user: string, isSecure: boolean): string {
  const place = (user === '' ? '' : `${user}@`) + advertised(listener)
  if (isSecure && listener.protocol === 'tls') return `sips:${place}`
  if (isSecure && listener.protocol === 'wss') return `sips:${place};transport=ws`
  return `sip:${place}${transportParam(listener)}`
}

/** Whether a URI, alone or in a Route, Record-Route or Contact value, is `sips`. */
export const isSips = (value: string | undefined): boolean =>
  value !== undefined && /^sips:/i.test(bareUri(value))
