/** RFC 3261 §17.1.1.1 and Table 4; every other transaction timer is derived from these. Milliseconds. */
export interface Timers {
  /** Round-trip estimate: first retransmission; 64·T1 ends a transaction. */
  readonly t1Ms: number
  /** Longest interval between retransmissions of non-INVITE requests and INVITE responses. */
  readonly t2Ms: number
  /** How long a transaction may take. Default: 64·T1. */
  readonly t1x64Ms?: number | undefined
  /** How long a message may live in the network. */
  readonly t4Ms: number
  /** Timer C (§16.6): an INVITE without a final answer is cancelled this long after its last provisional. */
  readonly cMs: number
  /** A request that the application has not answered ends with 480 (INVITE) or 500 after this. */
  readonly applicationMs: number
  /**
   * How long the first target of an INVITE may be silent while there is another one; each further one half as long as the one
   * before, so that several silent ones are left within twice this time. Default: as with other requests.
   */
  readonly inviteSilenceMs?: number
}

export const defaultTimers: Timers = {
  t1Ms: 500,
  t2Ms: 4_000,
  t4Ms: 5_000,
  cMs: 185_000,
  applicationMs: 240_000,
}

/**
 * How long a target may be silent while there is another one (RFC 3263 §4.3): four copies by UDP.
 *
 * @param silent how many targets were silent before. An answer takes a round trip: T1 is a cautious estimate of two.
 */
export function silenceMs(
  { t1Ms, inviteSilenceMs }: Timers,
  method: string,
  silent: number,
): number {
  if (method !== 'INVITE' || inviteSilenceMs === undefined) return 8 * t1Ms
  return Math.max(Math.min(inviteSilenceMs, t1Ms / 2), inviteSilenceMs / 2 ** silent)
}

/** Timers B, F, H, J, L, M, and D on unreliable transports: 64·T1. */
export const transactionTimeoutMs = ({ t1Ms, t1x64Ms }: Timers): number => t1x64Ms ?? 64 * t1Ms
