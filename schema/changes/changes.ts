/** Memory follows the database: what depends on a table is loaded again when another process has changed that table. */
import type { Cancel } from '../clock.ts'

/** Tables whose rows processes keep in memory. */
export const topics = [
  'application_key',
  'application_key_previous',
  'user',
  'tenant',
  'tenant_domain',
  'tenant_number',
  'extension',
  'ai_agent',
  'dispatcher_set',
  'dispatcher_node',
  'carrier',
  'carrier_gateway',
  'outbound_route',
  'inbound_route',
  'customer',
  'customer_number',
  'wallet',
  'rate_plan',
  'rate',
  'webhook_endpoint',
  'source_ban',
  'spend_guard',
] as const

export type Topic = (typeof topics)[number]

/** Which part of a topic has changed, such as the ids of its rows, or one prefix of the rates; `all`: it is not told. */
export type Details = ReadonlySet<string> | 'all'

export interface Follower {
  /** None: only when it is unknown what was missed. */
  readonly topics: readonly Topic[]
  /** Takes over what is stored now. Of several topics, the details are those of all. */
  readonly reload: (details: Details) => Promise<void>
  /** From the begin of one reload to that of the next, at least. Milliseconds. */
  readonly intervalMs?: number
  /** Beyond so many, the details are `all`. Absent: 50. */
  readonly maxDetails?: number
}

export interface Changes {
  /**
   * `reload` is called within a second after another process has committed, and perhaps after commits of this one.
   * When it is unknown what was missed, all load everything within a few seconds: one after the other, as they follow.
   * Changes during a reload cause one more; one that fails is repeated.
   */
  follow(follower: Follower): Cancel
  /** Tells what has changed since this was opened, and what changes from now on. Follow first, and load what you follow. */
  start(): Promise<void>
  stop(): Promise<void>
}
