/** The accepted sockets of one listener, counted in all and by where they come from. */
import type { Socket } from 'node:net'
import type { Flow, Listener } from '../flow.ts'
import type { SourceStatus } from '../options.ts'

export interface SourcesOptions {
  readonly listener: Listener
  readonly limits: StreamLimits
  /** Whether this peer is served at all. */
  readonly accepts: (source: Flow) => boolean
  readonly sourceStatus: (source: Flow) => SourceStatus
  /** A peer was refused. */
  readonly refused: () => void
  /** Connections that were not accepted but opened count towards the same limit. */
  readonly opened: () => number
}

/**
 * The part of a listener that strangers may fill: the rest is reserved for peers that have proved
 * themselves.
 */
const STRANGERS_PART = 0.75

export class Sources {
  readonly #options: SourcesOptions
  readonly #sockets = new Set<Socket>()
  readonly #perSource = new Map<string, number>()

  constructor(options: SourcesOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#sockets.size
  }

  /** Destroys sockets that are refused; for the `connection` event, before TLS and HTTP. */
  readonly admit = (socket: Socket): void => {
    const { remoteAddress: address, remotePort: port } = socket
    const source = networkOf(address ?? '')
    const present = this.#perSource.get(source) ?? 0
    if (
      address === undefined ||
      port === undefined ||
      !this.#accepts({ listener: this.#options.listener, address, port, connectionId: 0 }, present)
    ) {
      this.#options.refused()
      socket.destroy()
      return
    }
    this.#sockets.add(socket)
    this.#perSource.set(source, present + 1)
    socket.on('close', () => this.#remove(socket, source))
  }

  /** Connections in a handshake included. */
  destroyAll(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  #accepts(peer: Flow, present: number): boolean {
    const { limits, accepts, opened, sourceStatus } = this.#options
    const status = sourceStatus(peer)
    const { maxConnections, maxPerSource, maxPerKnownSource } = limits
    const room = status === 'stranger' ? maxConnections * STRANGERS_PART : maxConnections
    const most = status === 'known' ? maxPerKnownSource : maxPerSource
    return present < most && this.#sockets.size + opened() < room && accepts(peer)
  }

  #remove(socket: Socket, source: string): void {
    if (!this.#sockets.delete(socket)) return
    const rest = (this.#perSource.get(source) ?? 1) - 1
    if (rest === 0) this.#perSource.delete(source)
    else this.#perSource.set(source, rest)
  }
}

/**
 * An IPv4 address, or the /64 network of an IPv6 address: a host that has one of its addresses has
 * them all.
 */
export function networkOf(address: string): string {
  if (!address.includes(':') || address.includes('.')) return address
  const [start = '', end] = address.split('::')
  const [before, behind] = [groupsOf(start), groupsOf(end ?? '')]
  const zeros = Array.from({ length: 8 - before.length - behind.length }, () => '0')
  const network = [...before, ...zeros, ...behind].slice(0, 4)
  return `${network.join(':')}::/64`
}

const groupsOf = (text: string): string[] => (text === '' ? [] : text.split(':'))

/** The bounds of everything that has connections. */

export interface StreamLimits {
  /** Open connections of one listener, in both directions. */
  readonly maxConnections: number
  /** Accepted ones from one address, or from one IPv6 network of /64, at one listener. */
  readonly maxPerSource: number
  /** The same for peers that speak for many. */
  readonly maxPerKnownSource: number
  /** Bytes that may wait for a peer that does not read; beyond, sending fails. */
  readonly maxBufferedBytes: number
  /** Time until a connection that we open can be written to, TLS included. */
  readonly connectMs: number
  /** Time that an accepted one has for TLS, and for the HTTP request of a WebSocket. */
  readonly handshakeMs: number
  /**
   * An accepted connection without a whole message by then is closed, and so is any on which a
   * message takes longer from its first byte to its last.
   */
  readonly messageMs: number
  /** Closed after this long without traffic; longer than the longest registration. */
  readonly idleMs: number
  /** First probe of the kernel on a silent connection; a silent WebSocket is pinged. */
  readonly keepAliveMs: number
}

export const defaultStreamLimits: StreamLimits = {
  maxConnections: 10_000,
  maxPerSource: 256,
  maxPerKnownSource: 2_000,
  maxBufferedBytes: 1024 * 1024,
  connectMs: 4_000,
  handshakeMs: 8_000,
  messageMs: 32_000,
  idleMs: 7_500_000,
  keepAliveMs: 30_000,
}

/** A peer that speaks for many may have at least as many as any other. */
export const withSourceLimit = (limits: StreamLimits, maxPerSource: number): StreamLimits => ({
  ...limits,
  maxPerSource,
  maxPerKnownSource: Math.max(maxPerSource, limits.maxPerKnownSource),
})

/** Answers to keep-alives that may wait for a peer which asks and does not read. */
export const maxWaitingPongs = 16
