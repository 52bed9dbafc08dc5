/** Where a request outside dialogs goes first, and by which listener it leaves. */
import { isIP } from 'node:net'
import {
  defaultPort,
  isWebSocket,
  type Flow,
  type HopQuestion,
  type HopTarget,
  type Listener,
  type Protocol,
} from '../flow.ts'
import { bareUri } from '../dialog/route-set.ts'
import { hostPort } from '../message/host.ts'
import { parseUri } from '../message/uri.ts'

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
 * The listener from which `address` is reached: same protocol and family; among those the one that
 * shares most leading octets with it. A host name that is not looked up yet fits any family.
 */
export function chooseListener(
  listeners: readonly Listener[],
  protocol: Protocol,
  address: string,
): Listener | undefined {
  const family = isIP(address)
  let best: Listener | undefined
  let bestScore = -1
  for (const listener of listeners) {
    if (listener.protocol !== protocol) continue
    if (family !== 0 && isIP(listener.address) !== family) continue
    const score = sharedOctets(listener.address, address)
    if (score > bestScore) {
      best = listener
      bestScore = score
    }
  }
  return best
}

function sharedOctets(one: string, other: string): number {
  const a = one.split('.')
  const b = other.split('.')
  let shared = 0
  while (shared < a.length && a[shared] === b[shared]) shared += 1
  return shared
}

/** What has to be known of a hop before a request can be sent there; undefined: nothing. */
export function questionOf(
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
 * The ways to the targets of `host`, without those that no listener serves and those that lead to
 * ourselves.
 */
export function flowsTo(
  listeners: readonly Listener[],
  host: string,
  targets: readonly HopTarget[],
): Flow[] {
  const flows: Flow[] = []
  for (const { protocol, address, port } of targets) {
    const listener = chooseListener(listeners, protocol, address)
    if (listener === undefined || isOwnAddress(listeners, address, port, protocol)) continue
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
      listener.protocol === protocol &&
      listener.port === port &&
      (listener.address === address || listener.advertisedHost === address),
  )

export const flowTo = (listener: Listener, address: string, port: number): Flow => ({
  listener,
  address,
  port,
  connectionId: 0,
})

/** `host:port` as Via, Contact and placeholders show it. */
export const advertised = (listener: Listener): string =>
  hostPort(listener.advertisedHost, listener.advertisedPort)

/** What a URI that names this listener says of its protocol. */
export const transportParam = ({ protocol }: Listener): string =>
  protocol === 'udp' ? '' : `;transport=${protocol}`

/**
 * A URI by which this listener is reached. `isSecure`: what it is for was asked for with `sips`, and must
 * stay so (RFC 3261 §8.1.1.8, §12.1.1, §16.6 step 4), which says TLS by itself.
 */
export function ownUri(listener: Listener, user: string, isSecure: boolean): string {
  const place = (user === '' ? '' : `${user}@`) + advertised(listener)
  if (isSecure && listener.protocol === 'tls') return `sips:${place}`
  if (isSecure && listener.protocol === 'wss') return `sips:${place};transport=ws`
  return `sip:${place}${transportParam(listener)}`
}

/** Of the URI in a Route, Record-Route or Contact value, or by itself. */
export const isSips = (value: string | undefined): boolean =>
  value !== undefined && /^sips:/i.test(bareUri(value))
