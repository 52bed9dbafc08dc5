/** The interface of all transports, and their callbacks. */
import { BlockList, isIPv6 } from 'node:net'
import { networkInterfaces } from 'node:os'
import type { Flow, Listener } from '../flow.ts'
import type { Protocol } from '../../../schema/sip/message.ts'
import type { SourceStatus } from '../options.ts'
import type { BindAddress } from './listen.ts'

/** One listening socket and everything that runs over it. */
export interface Transport {
  readonly listener: Listener
  /**
   * Sends one SIP message. Never throws; a failure comes back later as `sendFailed`, of a datagram
   * only where there is a `reference`. On a stream, a flow with a `connectionId` names that
   * connection and no other: once it is closed, sending on it fails, unless there is a
   * `returnPort`. Without an id, a connection to the same address and port is used again or opened;
   * a WebSocket is never opened (RFC 7118 §4).
   */
  send(text: string, flow: Flow, reference: string): void
  /** Closes the connection of a flow; nothing for UDP. */
  close(flow: Flow): void
  /** Whether the very connection of a flow is still there; never for UDP. */
  isConnected(flow: Flow): boolean
  /** Releases the port and all connections. */
  stop(): Promise<void>
  /** Open connections; 0 for UDP. */
  readonly connections: number
  /**
   * Reads nothing and accepts no connection any more. What is sent, and the connections there are,
   * go on.
   */
  stopReading(): void
}

/** All are called from the event loop, never inside a call to the transport. */
export interface TransportCallbacks {
  /** One datagram, not yet decoded. */
  readonly datagram: (bytes: Buffer, flow: Flow) => void
  /**
   * Whether a peer that connects is served; asked before TLS, and before the connection has a flow.
   */
  readonly accepts: (source: Flow) => boolean
  readonly sourceStatus: (source: Flow) => SourceStatus
  /** A peer that connected was refused. */
  readonly refused: () => void
  /** One whole message from a stream. */
  readonly message: (text: string, flow: Flow) => void
  readonly sendFailed: (reference: string, reason: string) => void
  /** A stream connection is gone, closed by either side. */
  readonly connectionClosed: (flow: Flow) => void
}

/** The listener of a socket that has just been bound. */
export function boundListener(
  protocol: Protocol,
  bound: { readonly address: string; readonly port: number },
  advertisedHost: string | undefined,
  { localNets = [], names = [] }: Pick<BindAddress, 'localNets' | 'names'> = {},
): Listener {
  const { address, port } = bound
  const own = usableAddress(address)
  const listener = {
    protocol,
    address,
    port,
    advertisedHost: advertisedHost ?? own,
    advertisedPort: port,
    ...(names.length > 0 && { names }),
  }
  if (localNets.length === 0) return listener
  const local = { ...listener, names: [...names, own], isLocal: inNetworks(localNets) }
  if (local.advertisedHost === own) return local
  const inside: { outside?: Listener } & Listener = { ...local, advertisedHost: own }
  const outside = { ...local, inside }
  inside.outside = outside
  return outside
}

/** @throws for a text that is no network. */
function inNetworks(networks: readonly string[]): (address: string) => boolean {
  const list = new BlockList()
  for (const network of networks) {
    const [address = '', bits = ''] = network.split('/')
    const family = isIPv6(address) ? 'ipv6' : 'ipv4'
    list.addSubnet(address, Number(bits === '' ? (family === 'ipv6' ? 128 : 32) : bits), family)
  }
  return (address) => list.check(address, isIPv6(address) ? 'ipv6' : 'ipv4')
}

/** Connections leave from the address that is listened on. */
export const localAddressOf = ({ address }: Listener): { readonly localAddress?: string } =>
  address === '0.0.0.0' || address === '::' ? {} : { localAddress: address }

/**
 * Peers cannot answer to `0.0.0.0`: a socket bound to all interfaces shows the first one that is
 * not internal, or else the loopback address.
 */
function usableAddress(address: string): string {
  if (address !== '0.0.0.0' && address !== '::') return address
  const family = address === '::' ? 'IPv6' : 'IPv4'
  for (const addresses of Object.values(networkInterfaces()))
    for (const candidate of addresses ?? [])
      if (candidate.family === family && !candidate.internal) return candidate.address
  return family === 'IPv6' ? '::1' : '127.0.0.1'
}
