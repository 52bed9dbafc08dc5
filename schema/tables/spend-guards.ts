/** Spend guards, and what was taken of their caps: `engine/charging/guards`. */
import type { GuardAction, GuardPeriod } from '../contracts/limits.ts'
import type { Defaulted } from './kinds.ts'

/** One of the customer, the extension and the tenant is set. */
export interface SpendGuardTable {
  guard_uuid: string
  customer_id: number | null
  extension_id: number | null
  tenant_id: number | null
  /** Only this tenant and the platform may change it; null: only the platform. */
  set_by_tenant_id: number | null
  /** As `normalPrefix` writes it. */
  prefix: string
  action: GuardAction
  /** Of a cap. */
  amount_micros: Defaulted<number>
  currency: string | null
  per: GuardPeriod | null
  reason: string
  /** `key:<uuid>`, `user:<username>`. */
  created_by: string
  created_at: number
  changed_at: number
  expires_at: number | null
  /** Live calls that began before end. */
  ends_calls_before: number | null
  /** Removed then; null: it is in force until it expires. */
  ended_at: number | null
  ended_by: string | null
}

/** What all processes have taken of a cap in one period. */
interface SpendGuardUseTable {
  guard_uuid: string
  period_start: number
  amount_micros: number
  taken_micros: number
  /** To the last request. */
  given_micros: number
}

export interface SpendGuardTables {
  spend_guard: SpendGuardTable
  spend_guard_use: SpendGuardUseTable
}
