/** What accounting webhooks tell (SPECIFICATION.md §6.2). */

export const eventTypes = [
  'call.authorized',
  'call.denied',
  'call.answered',
  'call.ended',
  'wallet.topped_up',
  'wallet.low_balance',
  'wallet.depleted',
  'wallet.adjusted',
  'dispatcher.node.down',
  'dispatcher.node.up',
  'key.revoked',
] as const

export type EventType = (typeof eventTypes)[number]

/** Sent on request to one endpoint, whatever it listens for. */
export const testEventType = 'webhook.test'

export interface OutgoingEvent {
  readonly type: EventType
  /** Whose event it is; null: the platform's, which endpoints of a tenant do not hear. */
  readonly tenantId: number | null
  /** In the API's own spelling. */
  readonly data: Readonly<Record<string, unknown>>
}

/** Where events go. */
export interface EventSink {
  /** Somebody listens: an event that nobody hears need not be put together. */
  wants(type: EventType, tenantId: number | null): boolean
  /** Runs inside a transaction of the caller: the event exists if and only if that commits. */
  write(event: OutgoingEvent): void
}
