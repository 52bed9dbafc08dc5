/** What is charged, or waits to be told, beside the call records. */
import type { Defaulted, Flag, Sum } from './kinds.ts'

/** Answered calls that have not ended; `kill -9` must not lose them. */
interface CallJournalTable {
  call_uuid: string
  /** JSON of the `OpenCall` (see call-journal.ts). */
  call: string
  /** JSON of the `Tariff` at the start of the call; null when another OCS charges it, or it is free. */
  tariff: string | null
  answered_at: number
  alive_at: number
}

/** Reports of nodes to `POST /api/ocs/cdr`: a repeated report gets the same numbers. */
export interface OcsReportTable {
  call_uuid: string
  billsec: number
  /** 1: another duration than the accepted one; not charged, kept for audit. */
  is_conflict: Flag
  cost_micros: number
  /** Null: the call has no wallet. */
  balance_after_micros: Sum | null
  currency: string | null
  /** JSON of a conflicting body; null where the CDR has the same data. */
  body: string | null
  reported_at: number
}

/** CDRs that an external OCS has not yet acknowledged. */
interface CdrOutboxTable {
  call_uuid: string
  /** JSON body of `POST /api/ocs/cdr`. */
  body: string
  attempts: Defaulted<number>
  next_attempt_at: number
  last_error: string | null
  /** `NODE_NAME` of the process that sends it, where several share the database. */
  claimed_by: string | null
  /** Another process may send it from then on. */
  claimed_until: number | null
}

/** What one process may spend of a wallet without asking. */
interface WalletLeaseTable {
  wallet_id: number
  /** Its `NODE_NAME`. */
  node: string
  amount_micros: Sum
  /** Grows with each change: the greatest is the newest. */
  version: number
  /** Of the node's last request: one that arrives later than a newer one changes nothing. */
  request: number
}

export interface ChargingTables {
  wallet_lease: WalletLeaseTable
  call_journal: CallJournalTable
  ocs_report: OcsReportTable
  cdr_outbox: CdrOutboxTable
}
