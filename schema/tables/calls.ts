/** Call records, and sums of them. */
import type {
  Direction,
  Disposition,
  HangupParty,
  MosSource,
  RecordingError,
} from '../contracts/field-values.ts'
import type { Attestation } from '../contracts/caller-identity.ts'
import type { Verification, Verstat } from '../contracts/stir.ts'
import type { Defaulted, Flag, Id, Sum } from '../columns.ts'

export interface CallTables {
  cdr: CdrTable
  refused_calls: RefusedCallsTable
  recording: RecordingTable
  call_sum: CallSumTable
  margin_sum: MarginSumTable
  call_sum_state: CallSumStateTable
  call_sum_gap: CallSumGapTable
  cdr_cost_change: CdrCostChangeTable
  record_block: RecordBlockTable
  record_column: RecordColumnTable
}

/** One row for every INVITE, refused and cancelled ones included. */
export interface CdrTable {
  id: Id
  call_uuid: string
  call_id: string
  direction: Direction
  caller_id_number: string
  caller_id_name: string | null
  destination_number: string
  start_stamp: number
  answer_stamp: number | null
  end_stamp: number
  /** Milliseconds from INVITE to the first 18x or 2xx, null when none came. */
  post_dial_delay_ms: number | null
  duration: number
  billsec: number
  disposition: Disposition
  sip_code: number
  hangup_cause: string
  hangup_by: HangupParty
  /** Why the platform refused or ended the call, such as `insufficient_funds`; null otherwise. */
  denial_code: string | null
  set_id: number | null
  node: string | null
  carrier: string | null
  /** JSON array of `{destination, status, reason, sent, startedAt, endedAt}`, in order. */
  attempts: string
  tenant_id: number | null
  customer_id: number | null
  rate_prefix: string | null
  cost_micros: number
  currency: string | null
  /** The lower one of both directions. */
  mos_score: number | null
  mos_source: MosSource | null
  /** The higher ones. */
  jitter_ms: number | null
  packet_loss_pct: number | null
  /** JSON of both directions (`bothDirections`); null: nothing is known. */
  media_quality: string | null
  /** Known after the call, for calls that were to be recorded. */
  recording_error: RecordingError | null
  source_address: string
  /** A restart closed the call, at its last heartbeat. */
  is_recovered: Defaulted<Flag>
  is_unauthorized_by_ocs: Defaulted<Flag>
  /** Only for a call refused for money: the cost of its first seconds, and the available money. */
  required_micros: number | null
  available_micros: number | null
  /**
   * The sentence of its `denial_code`; null: it has no code, or an earlier version wrote the
   * record.
   */
  denial_text: string | null
  /** The instance that had the call; null: recorded by an earlier version. */
  instance: string | null
  /** JSON object of texts, which a hook has set; null: none. */
  tags: string | null
  /** The proof that Identity headers gave; null: nobody has looked at them. */
  verification: Verification | null
  verstat: Verstat | null
  /** That of the caller's network, else ours. */
  attestation: Attestation | null
  /**
   * Cost by the carrier that has answered; null: none has, or its price is not known. So are the
   * next two.
   */
  carrier_cost_micros: number | null
  /** The prefix of its price list. */
  carrier_prefix: string | null
  carrier_currency: string | null
  /** The owner of the carrier, who may see what it takes; null: the platform, or no price. */
  carrier_tenant_id: number | null
  /** The number by which the carrier charges; null: the called number. */
  carrier_number: string | null
  /** JSON of a `RatedBy`; null: nobody paid here, or an earlier version recorded it. */
  rated: Defaulted<string | null>
  /** The called number as it came; null: the call began here, or it is not known. */
  number_dialled: Defaulted<string | null>
}

/** Some thousand records by columns, as searches read them (`control/reports/columns`). */
interface RecordBlockTable {
  first_id: number
  last_id: number
  /** The uuid of the last record: it shows whether a file of blocks belongs to this database. */
  last_uuid: string
  /** The first and the last start of its calls. */
  first_start: number
  last_start: number
  calls: number
  /** Grows when it is made again. */
  version: number
  /** 1: a record has changed since. */
  is_stale: Flag
  /** JSON of pairs: the first and the last id that was missing when it was made. */
  gaps: string
  built_at: number
  checked_at: number
  /** JSON of a `BlockHead`. */
  head: string
}

interface RecordColumnTable {
  first_id: number
  name: string
  /** That of its block. */
  version: number
  data: Buffer
}

/** Totals of the calls of one group of one day. */
interface CallSumTable {
  /** Midnight UTC in milliseconds: calls belong to the day of their start. */
  day: number
  /** The criterion of its groups: `caller`, `carrier` … */
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
  /**
   * The most expensive call: 10^18 plus its cost in micro-units, `-`, the id of its record; empty:
   * all were free.
   */
  dearest: string
}

/** Margins of the calls of one group of one day. */
interface MarginSumTable {
  /** Midnight UTC in milliseconds. */
  day: number
  /** `customer`, `carrier` or `destination`. */
  dimension: string
  /** 0: of calls without a tenant; -1: of all calls, which destinations have. */
  tenant_id: number
  /** 1: carrier and price are the tenant's, which may see the margin. */
  is_own: number
  member: string
  /** Empty: nobody has paid. */
  currency: string
  /** Empty: the price of the carrier is not known. */
  carrier_currency: string
  calls: number
  billsec: number
  /** Calls that were sold for less than they were bought for, in one currency. */
  losses: number
  cost_micros: Sum
  carrier_cost_micros: Sum
}

/** One row: the records that the sums include. */
interface CallSumStateTable {
  id: number
  /** Records up to this id, except those in `call_sum_gap`. */
  records_up_to: number
  /** The uuid of that record: it shows whether a file of sums belongs to this database. */
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

/** A change of the cost of a stored record, by which its sums are corrected. */
interface CdrCostChangeTable {
  id: Id
  cdr_id: number
  cost_micros: number
  currency: string | null
  /**
   * 1: the record comes with what the columns here say of it; -1: it was so before, and the amounts
   * are negative; 0: its cost was changed by this amount, and the rest is unknown.
   */
  records: Defaulted<-1 | 0 | 1>
  rate_prefix: Defaulted<string | null>
  carrier_cost_micros: Defaulted<number | null>
  carrier_currency: Defaulted<string | null>
  carrier_tenant_id: Defaulted<number | null>
}

/** A finished file; the call's record is found by the same uuid, and may be gone before it. */
export interface RecordingTable {
  call_uuid: string
  tenant_id: number | null
  started_at: number
  duration_ms: number
  bytes: number
  sha256: string
}

/** `unknown_source`: 403; `overload`: 503 before the tenant of the call was known. */
export const refusalReasons = ['unknown_source', 'overload'] as const
export type RefusalReason = (typeof refusalReasons)[number]

/** At most one row per minute and reason. */
export interface RefusedCallsTable {
  minute: number
  reason: RefusalReason
  calls: number
}
