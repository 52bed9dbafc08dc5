/** What answers "since when" and "why". */
import type { Id } from './kinds.ts'

export interface CauseTables {
  state_change: StateChangeTable
  key_address: KeyAddressTable
  api_hour: ApiHourTable
  wrong_password: WrongPasswordTable
}

/** At most `MAX_CHANGES_OF_ONE` per subject: `engine/state-changes.ts`. */
export interface StateChangeTable {
  id: Id
  kind: StateChangeKind
  /** Of the node, the gateway or the carrier. */
  subject_id: number
  /** Its owner at that time: ids of removed rows may be given again. */
  tenant_id: number | null
  /** The destination, or the name of the carrier. */
  name: string
  from_state: string
  to_state: string
  cause: 'probe' | 'call' | 'operator' | 'reload' | 'register'
  reason: string
  /** As in the audit log; null: no operator. */
  actor: string | null
  /** The node of the platform that has seen it. */
  observer: string
  at: number
}

export type StateChangeKind = 'node' | 'gateway' | 'registration'

/** Where a key was used. At most `MAX_ADDRESSES` per key: `control/auth/key-usage.ts`. */
export interface KeyAddressTable {
  application_key_id: number
  address: string
  first_at: number
  last_at: number
  requests: number
  /** Of them those with 401, 403 or 429. */
  denied: number
}

/** Requests of an hour by key, route and outcome; older hours are removed. */
export interface ApiHourTable {
  /** Hours since 1970-01-01 UTC. */
  hour: number
  /** 0: none; of such requests only those that failed are counted. */
  application_key_id: number
  /** Method and path pattern. */
  route: string
  /** The code of the error, or its status; empty: a success. */
  outcome: string
  requests: number
  first_at: number
  last_at: number
}

/** Of phones; older hours are removed: `engine/registrar/wrong-passwords.ts`. */
export interface WrongPasswordTable {
  /** Hours since 1970-01-01 UTC. */
  hour: number
  tenant_id: number
  /** 0: there is no such extension. */
  extension_id: number
  /** An IPv4 address, or an IPv6 network; empty: one of many. */
  source: string
  failures: number
  first_at: number
  last_at: number
}
