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
  /** For a connection that we open: until it can be written to, TLS included. */
  readonly connectMs: number
  /** For an accepted one: TLS, and the HTTP request that becomes a WebSocket. */
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
