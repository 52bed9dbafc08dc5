/** The trace of one call: its SIP messages and decisions. */

export type TraceEntry =
  | {
      readonly kind: 'message'
      /** Milliseconds UTC. */
      readonly at: number
      readonly direction: 'received' | 'sent'
      /** Its Call-ID. */
      readonly leg: string
      readonly transport: string
      /** `address:port`: the peer of a received message, the local address of a sent one. */
      readonly address: string
      readonly text: string
    }
  | {
      readonly kind: 'decision'
      readonly at: number
      readonly what: string
      readonly detail: Readonly<Record<string, unknown>>
    }

export interface Trace {
  readonly tenantId: number | null
  /** Call-IDs, the caller's first. */
  readonly legs: readonly string[]
  /** In the order of time. */
  readonly entries: readonly TraceEntry[]
  /** False: the first messages are no longer kept. */
  readonly isComplete: boolean
}
