/** Events and payments of payment providers. */
import type { Id } from './kinds.ts'

/** Processed events, once each. */
export interface PaymentEventTable {
  event_id: string
  kind: string
  /** An event that ended in an alert may be sent again and is then processed again. */
  outcome: 'credited' | 'duplicate' | 'ignored' | 'alert'
  received_at: number
}

/** All names of a credited payment: payment intent, checkout session, invoice, charge. */
export interface PaymentReferenceTable {
  reference: string
  /** `ref` of its ledger entry. */
  payment: string
  customer_id: number
  amount_micros: number
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
  | 'unreadable_event'
  | 'refund'
  | 'dispute'
  | 'subscription_ended'
