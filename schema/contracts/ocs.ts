/**
 * The online charging system (OCS) of this process as the API plane sees it: money, customers, rates and
 * the calls that nodes charge over HTTP, as plain data. `engine/charging/ocs.ts` implements it.
 */
import type { CallRecord } from '../call-record.ts'
import type { Tariff } from '../call-journal.ts'
import type { LedgerEntryTable } from '../database.ts'
import type { AuthorizationRequest } from './charging.ts'

export interface OcsPort extends NodeCharging, MoneyPort, RatesPort {
  /**
   * What a live call would cost if it ended after so many seconds of talk, as its record would say it.
   * Nothing and no currency where nobody pays.
   */
  costSoFar(callUuid: string, seconds: number): CostSoFar
  /** Present figures, and verdicts since the start by `granted`, `overloaded` or denial code. */
  stats(): OcsStats
}

/** Charging for nodes that ask over HTTP. */
interface NodeCharging {
  admit(request: AuthorizationRequest): NodeVerdict
  prolong(callUuid: string, usedSeconds: number): NodeExtension
  /** How long an open call could last at most, as things stand now; 0: it is not open. */
  affordableSeconds(callUuid: string): number
  /**
   * A node's report; `body` is what it sent, kept for audit. Resolves when it is durable; and with
   * `unstored` when that is not possible soon: the node may come again.
   */
  reportFromNode(record: CallRecord, body: string): Promise<ReportAnswer>
}

interface MoneyPort {
  readonly ledger: LedgerPort
  /** Moves money now: the next authorize sees it. Safe to repeat by kind and reference. */
  move(move: MoneyMove): MoneyMoved
  /** Undefined: there is no such customer. */
  balanceOf(customerId: number): Balance | undefined
  /** Takes over customers, numbers and balances as they are stored now. Live calls keep their terms. */
  reloadCustomers(): void
}

interface RatesPort {
  /** Explains a price: the rate of a plan for a number at a time, and what `seconds` of it cost. */
  quote(planId: number, number: string, seconds: number, at: number): Quote | undefined
  /** Takes over the rates as they are stored now, for calls that start from now on. */
  reloadRates(): void
  /** The same for a large table: `pause` lets calls have their turn. Resolves when the rates hold. */
  reloadRatesGently(pause: () => Promise<void>): Promise<void>
  /** The same for one prefix of a plan, at no cost for the others. */
  reloadPrefix(planId: number, prefix: string): void
}

export type DenialCode =
  | 'insufficient_funds'
  | 'customer_inactive'
  | 'destination_blocked'
  | 'concurrent_limit'
  | 'cps_limit'
  | 'daily_spend_limit'
  | 'unknown_caller'
  /** The customer who would pay belongs to another tenant than the source of the call. */
  | 'payer_of_other_tenant'
  /** The source has no customer, and the number in From may not name one. */
  | 'no_payer'
  | 'no_rate'
  /** The call has reached the customer's cap per call. */
  | 'max_call_seconds'
  /** An extension was asked for a call that is not open. */
  | 'unknown_call'

/** What an open call holds. */
export interface HeldGrant {
  readonly callUuid: string
  /** Undefined: nobody pays (an unknown caller who is let through). */
  readonly account: { readonly terms: { readonly customerId: number } } | undefined
  readonly tariff: Tariff | null
  /** Since the answer; Infinity when more talk costs nothing. */
  readonly grantedSeconds: number
  readonly amountMicros: number
}

export type NodeVerdict =
  | { readonly kind: 'granted'; readonly reservation: HeldGrant }
  | { readonly kind: 'denied'; readonly code: DenialCode }
  /** The database has not taken records for a while: what cannot be billed is not started. */
  | { readonly kind: 'overloaded' }

export type NodeExtension = Exclude<NodeVerdict, { readonly kind: 'overloaded' }>

export type ReportAnswer =
  | {
      readonly kind: 'settled'
      readonly costMicros: number
      /** Null: the call has no wallet. */
      readonly balanceAfterMicros: bigint | null
      readonly currency: string | null
      readonly isDuplicate: boolean
    }
  /** Another duration of this call was accepted before; this one is kept for audit. */
  | { readonly kind: 'conflict' }
  /** The database does not take it at present. */
  | { readonly kind: 'unstored' }

/** The only way money moves: one append-only entry, and the wallet's balance with it. */
export interface LedgerPort {
  /** Posts one entry in a transaction, or in the one that is open. */
  post(entry: LedgerEntry): unknown
}

export interface LedgerEntry {
  readonly walletId: number
  readonly kind: LedgerEntryTable['kind']
  /** Signed: what is added to the balance. */
  readonly amountMicros: number
  /** Unique per kind: repeating an entry takes or gives nothing. */
  readonly ref: string
  /** Who caused it: `ocs`, `key:<uuid>`, `user:<name>`, `payment`. */
  readonly actor: string
  readonly note: string | null
  /** Milliseconds UTC. */
  readonly at: number
}

export interface MoneyMove {
  readonly customerId: number
  readonly kind: 'topup' | 'adjust' | 'refund'
  /** Added to the balance. Only an adjustment may be negative; never 0. */
  readonly amountMicros: number
  /** Unique per kind: repeating a move changes nothing. */
  readonly ref: string
  /** `key:<uuid>`, `user:<name>`, `payment`. */
  readonly actor: string
  readonly note: string | null
}

export type MoneyMoved =
  | { readonly kind: 'moved'; readonly balanceMicros: bigint }
  /** The kind and reference were used before: the numbers of that move. */
  | {
      readonly kind: 'duplicate'
      readonly amountMicros: number
      readonly balanceMicros: bigint
      /** The earlier move was of the same customer and amount. */
      readonly isSame: boolean
    }
  | { readonly kind: 'unknown_customer' }
  /** A deduction beyond what is available: the rest is owed for calls, or promised to live ones. */
  | { readonly kind: 'insufficient_funds'; readonly availableMicros: bigint }
  /** The balance would not fit into its column. */
  | { readonly kind: 'balance_out_of_range' }

/** What was moved since the start, by kind and currency. */
export interface MoneySum {
  readonly kind: LedgerEntryTable['kind']
  /** ISO 4217. */
  readonly currency: string
  readonly count: number
  /** Absolute amounts added up. Micro-units. */
  readonly amountMicros: bigint
}

export interface Balance {
  readonly balanceMicros: bigint
  /** Held for live calls. */
  readonly reservedMicros: bigint
  /** Balance + credit limit − reserved. */
  readonly availableMicros: bigint
  readonly creditLimitMicros: number
  /** Null: the customer has no wallet yet. */
  readonly currency: string | null
  readonly openCalls: number
}

export interface CostSoFar {
  readonly costMicros: number
  readonly currency: string | null
}

/** One rate of a plan, as it is stored. */
export interface Rate {
  readonly planId: number
  readonly tariff: Tariff
  readonly isBlocked: boolean
  /** Milliseconds UTC, inclusive; null: since ever. */
  readonly effectiveFrom: number | null
  /** Exclusive; null: without end. */
  readonly effectiveTo: number | null
}

export interface Quote {
  readonly rate: Rate
  readonly costMicros: number
  /** Their sum, rounded up to the plan's decimals, is the cost; none for a call without talk. */
  readonly parts: readonly PricePart[]
}

export interface PricePart {
  readonly part: 'connect_fee' | 'first_increment' | 'further_increments'
  /** Those that are charged. */
  readonly seconds: number
  readonly amountMicros: number
}

export interface OcsStats {
  /** Calls that hold a reservation or wait for their debit. */
  readonly openCalls: number
  readonly reservedMicros: bigint
  readonly waitingWrites: number
  readonly commits: number
  /** Since the last success. */
  readonly commitFailures: number
  readonly verdicts: Readonly<Record<string, number>>
  /** Debits, top-ups, adjustments and refunds since the start. */
  readonly moved: readonly MoneySum[]
}
