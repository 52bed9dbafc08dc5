/**
 * A flow is where a message came from, or goes to: one remote address as seen from one of our
 * listeners. A response returns by the flow of its request.
 */
import { BlockList, isIP, isIPv6 } from 'node:net'
import type { Protocol } from '../../schema/sip/message.ts'

/** One bound socket. Compared by identity: there is exactly one object per listening socket. */
export interface Listener {
  readonly protocol: Protocol
  /** Bound address and port. */
  readonly address: string
  readonly port: number
  /**
   * Address and port in Via and Contact; the bound ones unless an external address is configured.
   */
  readonly advertisedHost: string
  readonly advertisedPort: number
  /** Other hosts that mean this listener. */
  readonly names?: readonly string[]
  /**
   * Whether an address is in the local network of this listener: then requests to it leave from
   * here.
   */
  readonly isLocal?: (address: string) => boolean
  /** The same socket as its local network sees it, which is shown the bound address. */
  readonly inside?: Listener
  /** The listener itself, for its `inside`. */
  readonly outside?: Listener
}

/** The listener as `address` sees it. */
export const sideFor = (listener: Listener, address: string): Listener => {
  const { inside } = listener
  return inside !== undefined && listener.isLocal?.(address) === true ? inside : listener
}

/** Whether a host in a URI means this listener. */
export const isNamed = (listener: Listener, host: string): boolean =>
  listener.advertisedHost === host ||
  listener.address === host ||
  listener.names?.includes(host) === true

export interface Flow {
  readonly listener: Listener
  /** IPv6 without brackets. */
  readonly address: string
  readonly port: number
  /** The connection of a stream transport; 0 for UDP, or for a connection not yet opened. */
  readonly connectionId: number
  /** A response whose connection is gone goes to this port by a new one (RFC 3261 §18.2.2). */
  readonly returnPort?: number
  /** The name that `address` was looked up for: by TLS the peer's certificate has to show it. */
  readonly hostName?: string
  /**
   * Opening a connection may take no longer: there is another target. Default: the transport's
   * limit.
   */
  readonly connectMs?: number
}

/** A next hop by name: what RFC 3263 needs to find its addresses. */
export interface HopQuestion {
  /** Never an IP literal. */
  readonly host: string
  /** 0: none was given. */
  readonly port: number
  /**
   * The protocol by `transport=`, by a port, or for want of a choice; undefined: by NAPTR and SRV
   * records.
   */
  readonly protocol: Protocol | undefined
  /** `sips`: TLS or nothing. */
  readonly isSecure: boolean
  /** The protocols of our listeners. */
  readonly supported: readonly Protocol[]
  /** Address of the peer in a dialog that has given the name; see `isInward`. */
  readonly peer?: string
}

const thisMachine = new BlockList()
for (const [network, length] of [
  ['0.0.0.0', 8],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
] as const)
  thisMachine.addSubnet(network, length, 'ipv4')
thisMachine.addAddress('::', 'ipv6')
thisMachine.addAddress('::1', 'ipv6')
thisMachine.addSubnet('fe80::', 10, 'ipv6')

const isOfThisMachine = (address: string): boolean => {
  const [plain = ''] = address.split('%', 1)
  return thisMachine.check(plain, isIPv6(plain) ? 'ipv6' : 'ipv4')
}

/** Whether a peer from elsewhere would have us send to loopback or to a link-local address. */
export const isInward = (address: string, peer: string): boolean =>
  address !== peer && isIP(address) !== 0 && isOfThisMachine(address) && !isOfThisMachine(peer)

/** One address at which a next hop may be reached. */
export interface HopTarget {
  readonly protocol: Protocol
  /** IPv6 without brackets. */
  readonly address: string
  readonly port: number
}

/** The flow of requests to a peer that sent one: they end with its connection. */
export const requestFlow = ({ listener, address, port, connectionId }: Flow): Flow => ({
  listener,
  address,
  port,
  connectionId,
})

export const isReliable = (protocol: Protocol): boolean => protocol !== 'udp'

/** Only the client opens one (RFC 7118 §4). */
export const isWebSocket = (protocol: Protocol): boolean => protocol === 'ws' || protocol === 'wss'

/** RFC 3261 §19.1.2. */
export const defaultPort = (protocol: Protocol): number =>
  protocol === 'tls' || protocol === 'wss' ? 5_061 : 5_060
