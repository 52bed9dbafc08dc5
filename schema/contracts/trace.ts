/** The trace of one call: its SIP messages and decisions. */

export interface TraceMessage {
  readonly kind: 'message'
  /** Milliseconds UTC. */
  readonly at: number
  readonly direction: 'received' | 'sent'
  /** Its Call-ID. */
  readonly leg: string
  readonly transport: string
  /** `address:port`: of the peer; of a message that was sent by UDP, ours. */
  readonly address: string
  readonly text: string
}

export type TraceEntry =
  | TraceMessage
  | {
      readonly kind: 'decision'
      readonly at: number
      readonly what: string
      readonly detail: Readonly<Record<string, unknown>>
    }

/** Who is at the far end of a leg. */
export interface LegPeer {
  /** It has sent the INVITE, or got it; null: no INVITE of the leg is kept. */
  readonly role: 'caller' | 'called' | null
  /** Of a carrier, an extension or an agent; else as the INVITE names the peer. Null: not known. */
  readonly name: string | null
  /** `address:port` that its first message came from; null: none is kept. */
  readonly address: string | null
}

export interface Trace {
  readonly tenantId: number | null
  /** Call-IDs, the caller's first. */
  readonly legs: readonly string[]
  /** Of each leg. */
  readonly peers: readonly LegPeer[]
  /** In the order of time. */
  readonly entries: readonly TraceEntry[]
  /** False: the first messages are no longer kept. */
  readonly isComplete: boolean
}
