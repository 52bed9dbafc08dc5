/** Settings of the database, its nodes, and what they share. */
import type { Generated } from 'kysely'
import type { Defaulted } from './kinds.ts'

/** Values that the process generated and must keep, such as the JWT secret. */
export interface SettingTable {
  name: string
  value: string
}

/** The processes that serve from this database: `schema/nodes`. */
export interface NodeTable {
  name: string
  epoch: number
  install_id: string
  address: string
  /** Where it takes SIP requests of the other nodes; empty: nowhere yet. */
  sip_uri: string
  /** From where they come, joined by blanks. */
  sip_addresses: string
  version: string
  state: 'starting' | 'serving' | 'draining' | 'stopped'
  live_calls: number
  started_at: number
  heartbeat_at: number
  longest_grant_seconds: Generated<number>
  /** How long it grants without the server. */
  away_ms: Generated<number>
}

/** What one run of a node may use of something that all nodes draw from. */
export interface ShareTable {
  kind: 'limit' | 'request' | 'wallet' | 'cap'
  /** Such as `carrier 7 calls`; the id of a wallet; `capResource`. */
  resource: string
  node: string
  /** Of that run. */
  process: string
  amount: number
  /** The last request of the process that has set it. */
  request: number
  /** Grows with each change. */
  version: number
}

/** A source that no node listens to: `engine/guard`. Times are those of the database server. */
export interface SourceBanTable {
  source: string
  kind: 'operator' | 'proven' | 'claimed'
  reason: string
  since: number
  until: number
  /** Of the transaction that has stored it; 0: an older one. */
  version: Defaulted<number>
}
