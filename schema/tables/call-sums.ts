/** What calls have come to, day by day. PostgreSQL has these tables; beside an SQLite file they are a file of their own. */
import type { Id, Sum } from './kinds.ts'

export interface CallSumTables {
  call_sum: CallSumTable
  call_sum_state: CallSumStateTable
  call_sum_gap: CallSumGapTable
  cdr_cost_change: CdrCostChangeTable
}

/** What the calls of one group of one day have come to. */
interface CallSumTable {
  /** Midnight UTC in milliseconds: calls belong to the day of their start. */
  day: number
  /** What its groups are: `caller`, `carrier` … */
  dimension: string
  /** 0: of calls without a customer; -1: of all calls. */
  customer_id: number
  /** 0: of calls without a tenant; -1: of all calls. */
  tenant_id: number
  /** The group: an id, a number, a name; empty where calls have none. */
  member: string
  /** Empty where calls have none. */
  currency: string
  calls: number
  answered: number
  /** Not answered, because the platform refused them. */
  denied: number
  /** Not answered: `FAILED` or `CONGESTION`, and not refused by the platform. */
  failed: number
  billsec: number
  cost_micros: Sum
  /** The sum of the post-dial delays, and of how many calls it is. */
  pdd_ms: number
  pdd_calls: number
  first_at: number
  last_at: number
  /** The call records that were stored first and last. */
  first_id: number
  last_id: number
  /** The dearest call: 10^18 and its cost in micro-units, `-`, the id of its record; empty: all were free. */
  dearest: string
}

/** One row: which records the sums have. */
interface CallSumStateTable {
  id: number
  /** Records up to this id, except those in `call_sum_gap`. */
  records_up_to: number
  /** Of that record: a file beside another database has the sums of other calls. */
  last_uuid: string
  /** `cdr_cost_change` up to this id. */
  changes_up_to: number
  /** Missing ids up to this one are of records that were deleted. */
  gaps_after: number
}

/** Ids that were missing when later ones were there: their transactions may still be under way. */
interface CallSumGapTable {
  first_id: number
  last_id: number
  /** Milliseconds UTC. */
  noticed_at: number
}

/** What the cost of a stored record was changed by: its sums are corrected by it. */
interface CdrCostChangeTable {
  id: Id
  cdr_id: number
  cost_micros: number
  currency: string | null
}
