/**
 * Memory follows the database: what depends on a table is loaded again when another process has
 * changed that table.
 */
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
  'routing_webhook',
  'stir_key',
  'stir_authority',
  'customer',
  'phone_number',
  'wallet',
  'rate_plan',
  'rate',
  'webhook_endpoint',
  'source_ban',
  'spend_guard',
  'alert_channel',
  'alert_rule',
  'alert_rule_channel',
] as const

export type Topic = (typeof topics)[number]

/**
 * Which part of a topic has changed, such as ids of rows or a prefix of the rates; `all`: unknown.
 */
export type Details = ReadonlySet<string> | 'all'

export interface Follower {
  /** Empty: it reloads only when changes may have been missed. */
  readonly topics: readonly Topic[]
  /** Reads what is stored now. The details are those of all topics together. */
  readonly reload: (details: Details) => Promise<void>
  /** Least time between the starts of two reloads. Milliseconds. */
  readonly intervalMs?: number
  /** Beyond so many, the details are `all`. Absent: 50. */
  readonly maxDetails?: number
}

export interface Changes {
  /**
   * `reload` is called within a second after another process has committed, and perhaps after
   * commits of this one. After changes may have been missed, all followers load everything within a
   * few seconds, one after the other. Changes during a reload cause another one. A reload that
   * fails is repeated.
   */
  follow(follower: Follower): Cancel
  /**
   * Reports changes since this was opened, and from now on. Call `follow`, and load the data,
   * before.
   */
  start(): Promise<void>
  stop(): Promise<void>
  /**
   * Reports what others have committed so far. A thread of this process has the write lock of an
   * SQLite file.
   */
  readForeign(): void
  /** Does not report what was committed since: a thread of this process has, and nobody else. */
  passOver(): void
}
