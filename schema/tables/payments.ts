/** What payment providers told. */
import type { Id } from './kinds.ts'

/** Events that were understood, once each. */
export interface PaymentEventTable {
  event_id: string
  kind: string
  /** An event that ended in an alert may be sent again and is then judged anew. */
  outcome: 'credited' | 'duplicate' | 'ignored' | 'alert'
  received_at: number
}

/** Every name of a credited payment: payment intent, checkout session, invoice, charge. */
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
  /** Two events speak of one payment with different amounts: the first one counts. */
  | 'amount_mismatch'
  /** The balance would be larger than can be stored: the payment is never credited by itself. */
  | 'balance_out_of_range'
  | 'unreadable_event'
  | 'refund'
  | 'dispute'
  | 'subscription_ended'
