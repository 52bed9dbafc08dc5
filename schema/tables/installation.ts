/** Settings of the database, the processes that serve from it, and what they share. */
import type { Generated } from 'kysely'
import type { Defaulted } from '../columns.ts'

/** Values that the process generated and must keep, such as the JWT secret. */
export interface SettingTable {
  name: string
  value: string
}

/** The processes that serve from this database: `schema/instances`. */
export interface InstanceTable {
  name: string
  epoch: number
  install_id: string
  address: string
  /** Takes SIP requests of the other instances there; empty: not yet. */
  sip_uri: string
  /** Source addresses of its SIP requests, joined by blanks. */
  sip_addresses: string
  version: string
  state: 'starting' | 'serving' | 'draining' | 'stopped'
  live_calls: number
  started_at: number
  heartbeat_at: number
  longest_grant_seconds: Generated<number>
  /** How long it grants while the server is unreachable. */
  away_ms: Generated<number>
}

/** The share of one run of an instance in an amount that all instances draw from. */
export interface ShareTable {
  kind: 'limit' | 'request' | 'wallet' | 'cap'
  /** Such as `carrier 7 calls`; the id of a wallet; `capResource`. */
  resource: string
  node: string
  /** Identifies the run. */
  process: string
  amount: number
  /** The last request of the process that has set it. */
  request: number
  /** Grows with each change. */
  version: number
}

/**
 * A source that no instance listens to: `engine/flood-guard`. Times are those of the database
 * server.
 */
export interface SourceBanTable {
  source: string
  kind: 'operator' | 'proven' | 'claimed'
  reason: string
  since: number
  until: number
  /** The number of the transaction that stored it. */
  version: Defaulted<number>
}
