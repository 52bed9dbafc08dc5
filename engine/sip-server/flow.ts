/**
 * Where a message came from, or goes to: one remote address as seen from one of our listeners. A
 * response returns by the flow of its request.
 */
export type Protocol = 'udp' | 'tcp' | 'tls' | 'ws' | 'wss'

/** One bound socket. Compared by identity: there is exactly one object per listening socket. */
export interface Listener {
  readonly protocol: Protocol
  /** Bound address and port. */
  readonly address: string
  readonly port: number
  /** What Via and Contact show; the bound ones unless an external address is configured. */
  readonly advertisedHost: string
  readonly advertisedPort: number
}

export interface Flow {
  readonly listener: Listener
  /** IPv6 without brackets. */
  readonly address: string
  readonly port: number
  /** The connection of a stream transport; 0 for UDP, or for a connection not yet opened. */
  readonly connectionId: number
  /** A response whose connection is gone goes to this port by a new one (RFC 3261 §18.2.2). */
  readonly returnPort?: number
}

/** The way of requests, which end with their connection. */
export const requestFlow = ({ listener, address, port, connectionId }: Flow): Flow => ({
  listener,
  address,
  port,
  connectionId,
})

export const isReliable = (protocol: Protocol): boolean => protocol !== 'udp'
