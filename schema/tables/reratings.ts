/** Jobs that price past calls anew, and what they have changed. */
import type { Defaulted, Flag, Id, Sum } from '../columns.ts'

export interface ReratingTables {
  rerating: ReratingTable
  rerating_part: ReratingPartTable
  rerating_sum: ReratingSumTable
}

/** Customers were sold calls, or calls were bought of carriers. */
export type ReratingKind = 'sold' | 'bought'

/** Records are priced, money is posted; an undo restores records, then returns the money. */
export type ReratingState = 'rating' | 'posting' | 'done' | 'undoing' | 'returning' | 'undone'

export interface ReratingTable {
  id: Id
  /** A part of the references of its ledger entries, which nobody can guess. */
  ref: string
  /** The owner of the plan; null: the platform. */
  tenant_id: number | null
  kind: ReratingKind
  rate_plan_id: number
  rate_plan: string
  currency: string
  /** Calls that began since then. */
  from_at: number
  /** Exclusive. */
  before_at: number
  /** Null: all that the plan prices. */
  customer_id: number | null
  carrier_id: number | null
  /** Empty: all called numbers. */
  prefix: string
  /** The moment whose prices count; null: each call has the price in force when it took place. */
  priced_at: number | null
  state: ReratingState
  /** The last record that was looked at. */
  position_at: number
  /** While it is undone: parts from this one on are restored. */
  position_id: number
  /** Records of the period when it began. */
  total: number
  looked_at: Defaulted<number>
  /** Calls that the plan prices. */
  calls: Defaulted<number>
  changed: Defaulted<number>
  /** Calls that stay as they are: the plan has no price for them. */
  without_rate: Defaulted<number>
  /** The number by which they are priced is not in their records. */
  unknown_number: Defaulted<number>
  other_currency: Defaulted<number>
  parts: Defaulted<number>
  /** Sums of the calls that were priced. */
  before_micros: Sum
  after_micros: Sum
  /** Records that an undo has restored, and those that somebody has changed since. */
  restored: Defaulted<number>
  kept: Defaulted<number>
  started_by: string
  started_at: number
  ended_at: number | null
  undone_by: string | null
  undone_at: number | null
  /** The process that works on it, until then: others leave it alone. */
  claimed_by: string | null
  claimed_until: Defaulted<number>
}

interface ReratingPartTable {
  rerating_id: number
  part: number
  /** Deflated JSON. */
  changes: Buffer
}

export interface ReratingSumTable {
  rerating_id: number
  /** 0: calls without a customer. */
  customer_id: number
  calls: number
  before_micros: Sum
  after_micros: Sum
  returned_micros: Sum
  /** The amount that was added to the wallet; null: nothing yet. */
  posted_micros: Sum | null
  is_returned: Defaulted<Flag>
}
