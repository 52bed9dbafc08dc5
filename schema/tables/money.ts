/** Wallets, their ledger, payments, and guards on spending. */
import type { EntryKind } from '../contracts/field-values.ts'
import type { CapAction, CapPeriod } from '../contracts/limits.ts'
import type { Defaulted, Flag, Id, Sum } from '../columns.ts'

export interface MoneyTables {
  wallet: WalletTable
  ledger_entry: LedgerEntryTable
  payment_event: PaymentEventTable
  payment_reference: PaymentReferenceTable
  open_payment: OpenPaymentTable
  billing_alert: BillingAlertTable
  ocs_report: OcsReportTable
  cdr_outbox: CdrOutboxTable
  spend_guard: SpendingCapTable
}

interface WalletTable {
  id: Id
  customer_id: number
  currency: string
  /** Always the sum of the wallet's ledger entries. */
  balance_micros: Sum
  /** Whether a depletion event was sent and no money has been added since. */
  is_depleted: Defaulted<Flag>
  /** Debits of the day `spent_on`. Only for databases that several processes share. */
  spent_micros: Sum
  /** Midnight UTC in milliseconds. */
  spent_on: Defaulted<number>
  updated_at: number
}

/** Append only: triggers refuse UPDATE and DELETE. */
export interface LedgerEntryTable {
  id: Id
  wallet_id: number
  kind: EntryKind
  amount_micros: number
  balance_after_micros: Sum
  /** Unique per kind: the call uuid of a debit, the payment reference of a top-up. */
  ref: string
  actor: string
  note: string | null
  created_at: number
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

/** Processed events, once each. */
export interface PaymentEventTable {
  event_id: string
  kind: string
  /** An event that ended in an alert may be sent again and is then processed again. */
  outcome: 'credited' | 'duplicate' | 'ignored' | 'alert'
  received_at: number
}

/** All names of a credited payment: payment intent, checkout session, invoice, charge. */
interface PaymentReferenceTable {
  reference: string
  /** `ref` of its ledger entry. */
  payment: string
  customer_id: number
  amount_micros: number
}

/** A payment that events have told of and that is not credited: a row for each of its names. */
interface OpenPaymentTable {
  reference: string
  /** One of its names, the same in all its rows. */
  payment: string
  /** How an event has named its customer. */
  id_or_name: string | null
  email: string | null
  /** Null: the money has not arrived. */
  amount_micros: number | null
  currency: string | null
  told_at: number
}

export interface BillingAlertTable {
  id: Id
  kind: AlertKind
  event_id: string
  event_kind: string
  customer_id: number | null
  /** The provider's name of the payment, refund, dispute or subscription. */
  reference: string | null
  amount_micros: number | null
  currency: string | null
  detail: string
  created_at: number
  resolved_at: number | null
  resolved_by: string | null
}

export type AlertKind =
  | 'unknown_customer'
  | 'currency_mismatch'
  /** Two events of one payment have different amounts: the first one counts. */
  | 'amount_mismatch'
  /** The balance would exceed the largest balance: the payment is not credited automatically. */
  | 'balance_out_of_range'
  /** A person has resolved an earlier alert of the payment, and may have credited it by hand. */
  | 'resolved_before'
  /** It was announced long ago, and its money has not arrived. */
  | 'not_arrived'
  | 'unreadable_event'
  | 'refund'
  | 'dispute'
  | 'subscription_ended'

/** One of the customer, the extension and the tenant is set. */
export interface SpendingCapTable {
  guard_uuid: string
  customer_id: number | null
  extension_id: number | null
  tenant_id: number | null
  /** Only this tenant and the platform may change it; null: only the platform. */
  set_by_tenant_id: number | null
  /** In the form of `normalPrefix`. */
  prefix: string
  action: CapAction
  /** 0 unless it is a cap. */
  amount_micros: Defaulted<number>
  currency: string | null
  per: CapPeriod | null
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
