/** Events of accounting webhooks (SPECIFICATION.md §6.2). */

export const eventTypes = [
  'call.authorized',
  'call.denied',
  'call.answered',
  'call.ended',
  'recording.ready',
  'wallet.topped_up',
  'wallet.low_balance',
  'wallet.depleted',
  'wallet.adjusted',
  'dispatcher.node.down',
  'dispatcher.node.up',
  'node.lost',
  'node.recovered',
  'node.fenced',
  'key.revoked',
  'proposal.created',
  'proposal.decided',
] as const

export type EventType = (typeof eventTypes)[number]

/** Sent on request to one endpoint, whatever events it selects. */
export const testEventType = 'webhook.test'

export interface OutgoingEvent {
  readonly type: EventType
  /** Null: an event of the platform, which is not sent to endpoints of tenants. */
  readonly tenantId: number | null
  /** In the API's own spelling. */
  readonly data: Readonly<Record<string, unknown>>
}

/** Takes events. */
export interface EventSink {
  /** Whether an endpoint selects this event; false: it need not be built. */
  wants(type: EventType, tenantId: number | null): boolean
  /** Writes events inside the transaction of the caller, by a few statements. They exist if and only if that commits. */
  writeAll(events: readonly OutgoingEvent[]): Promise<void>
}
