/**
 * The online charging system (OCS) of this process as the API sees it, as plain data: customers and their
 * money, rates, and charging for nodes. `engine/charging/ocs.ts` implements it.
 */
import type { EntryKind } from './field-values.ts'
import type { CallRecord } from '../call-record.ts'
import type { Tariff } from '../journal/call-journal.ts'
import type { ChangedPayers } from './changed-rows.ts'
import type { AuthorizationRequest, Guard } from './charging.ts'
import type { ExitCodes } from '../rules/exit-codes.ts'
import type { Brake } from './spend-guards.ts'

export interface OcsPort extends NodeCharging, MoneyPort, RatesPort {
  /** What a live call would cost if it ended after `seconds` of talk. Free calls: 0, no currency and no tariff. */
  costSoFar(callUuid: string, seconds: number): CostSoFar
  /** Takes over spend guards as they are stored now, for calls that start once it resolves. */
  reloadSpendGuards(): Promise<void>
  /** What is dialled in place of `+`, as spend guards compare numbers; undefined: the installation names none. */
  readonly exitCodes: ExitCodes | undefined
  /** How many live calls of this process such a guard would cover. */
  callsUnder(brake: Brake): number
  /** Present figures, and totals since the start. */
  stats(): OcsStats
}

/** Charging for nodes that ask over HTTP. */
interface NodeCharging {
  authorizeForNode(request: AuthorizationRequest): Promise<NodeVerdict>
  extendForNode(callUuid: string, usedSeconds: number): Promise<NodeExtension>
  /**
   * Settles a node's report; `body` is what it sent, kept for audit. Resolves when it is durable, or with
   * `unstored` when that takes too long: the node may report again.
   */
  reportFromNode(record: CallRecord, body: string): Promise<ReportAnswer>
}

interface MoneyPort {
  readonly ledger: LedgerPort
  /**
   * Moves money, in the transaction of the caller or in one of its own: the next authorization after its commit sees
   * it. Safe to repeat by kind and reference. What is deducted is moved in a transaction of its own.
   */
  move(move: MoneyMove): Promise<MoneyMoved>
  /** Undefined: there is no such customer. */
  balanceOf(customerId: number): Balance | undefined
  /**
   * Takes over customers, numbers and balances as they are stored now; undefined: all of them. Reservations of live
   * calls stay. Resolves when they apply.
   */
  reloadCustomers(changed?: ChangedPayers): Promise<void>
}

interface RatesPort {
  /** The rate of a plan for a number at a time, and what `seconds` at this rate cost. */
  quote(planId: number, number: string, seconds: number, at: number): Quote | undefined
  /** Takes over the rates as they are stored now, for calls that start once it resolves. */
  reloadRates(): Promise<void>
  /** As `reloadRates`, for one prefix of a plan. */
  reloadPrefix(planId: number, prefix: string): Promise<void>
  /** As `reloadRates`, for one plan. */
  reloadPlan(planId: number): Promise<void>
}

export type DenialCode =
  | 'insufficient_funds'
  | 'customer_inactive'
  | 'destination_blocked'
  | 'concurrent_limit'
  | 'cps_limit'
  | 'daily_spend_limit'
  /** A spend guard blocks calls to such numbers, or its cap is used up. */
  | 'spend_guard'
  | 'unknown_caller'
  /** The paying customer belongs to another tenant than the source of the call. */
  | 'payer_of_other_tenant'
  /** The source has no customer, and From may not name one. */
  | 'no_payer'
  | 'no_rate'
  /** The call has reached the customer's longest allowed duration. */
  | 'max_call_seconds'
  /** The call to extend is not open. */
  | 'unknown_call'
  /** No money can be promised now: the database that several processes share has been away for too long. */
  | 'ocs_unreachable'

export type NodeVerdict =
  | NodeGrant
  | {
      readonly kind: 'denied'
      readonly code: DenialCode
      /** Which spend guard has denied it. */
      readonly guardUuid?: string | undefined
      /** What its sentence is about (`denialText`). */
      readonly detail?: string | undefined
    }
  /** A call that cannot be decided or billed does not start. */
  | { readonly kind: 'overloaded'; readonly by: Guard }

export interface NodeGrant {
  readonly kind: 'granted'
  readonly callUuid: string
  /** Null: the call is free (an unknown caller that is allowed). */
  readonly customerId: number | null
  readonly tariff: Tariff | null
  /** Since the answer; Infinity when more talk costs nothing. */
  readonly grantedSeconds: number
  readonly reservedMicros: number
  /** How long the call could last at most, as things are now. */
  readonly affordableSeconds: number
}

export type NodeExtension =
  | Pick<NodeGrant, 'kind' | 'grantedSeconds' | 'reservedMicros'>
  | { readonly kind: 'denied'; readonly code: DenialCode }

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
  /** The database cannot store it at present. */
  | { readonly kind: 'unstored' }

/** What a live call of another process, which serves no more, holds of a wallet. */
export interface Held {
  readonly callUuid: string
  readonly customerId: number
  readonly amountMicros: number
}

/** The only way money moves: one append-only entry, and the wallet's balance with it. In the caller's transaction. */
export interface LedgerPort {
  post(entry: LedgerEntry): Promise<unknown>
  /** Ends the depletion of a customer's wallet: a higher credit limit leaves something to spend. */
  endDepletion(customerId: number): Promise<void>
}

export interface LedgerEntry {
  readonly walletId: number
  readonly kind: EntryKind
  /** Signed: what is added to the balance. */
  readonly amountMicros: number
  /** Unique per kind: a repeated entry changes nothing. */
  readonly ref: string
  /** Its cause: `ocs`, `key:<uuid>`, `user:<name>`, `payment`. */
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
  /** Unique per kind: a repeated move changes nothing. */
  readonly ref: string
  /** `key:<uuid>`, `user:<name>`, `payment`. */
  readonly actor: string
  readonly note: string | null
}

export type MoneyMoved =
  | { readonly kind: 'moved'; readonly balanceMicros: bigint }
  /** Kind and reference were used before: the numbers of that move. */
  | {
      readonly kind: 'duplicate'
      readonly amountMicros: number
      readonly balanceMicros: bigint
      /** The earlier move had the same customer and amount. */
      readonly isSame: boolean
    }
  | { readonly kind: 'unknown_customer' }
  /** A deduction of more than is available: the rest is owed, or reserved for live calls. */
  | { readonly kind: 'insufficient_funds'; readonly availableMicros: bigint }
  /** The balance would exceed its column. */
  | { readonly kind: 'balance_out_of_range' }

/** What moved since the start, by kind and currency. */
export interface MoneySum {
  readonly kind: EntryKind
  /** ISO 4217. */
  readonly currency: string
  readonly count: number
  /** The sum of absolute amounts, in micro-units. */
  readonly amountMicros: bigint
}

export interface Balance {
  readonly balanceMicros: bigint
  /** Reserved for live calls. */
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
  readonly tariff: Tariff | null
}

/** One rate of a plan, as it is stored. */
export interface Rate {
  readonly planId: number
  readonly tariff: Tariff
  readonly isBlocked: boolean
  /** Milliseconds UTC, inclusive; null: no start. */
  readonly effectiveFrom: number | null
  /** Exclusive; null: no end. */
  readonly effectiveTo: number | null
}

export interface Quote {
  readonly rate: Rate
  readonly costMicros: number
  /** Their sum, rounded up to the plan's decimals, is the cost. Empty for 0 seconds. */
  readonly parts: readonly PricePart[]
}

export interface PricePart {
  readonly part: 'connect_fee' | 'first_increment' | 'further_increments'
  /** Charged seconds. */
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
  /** Events of calls that webhooks will not get, since the start. */
  readonly lostEvents: number
  /** By `granted`, `overloaded` or denial code. */
  readonly verdicts: Readonly<Record<string, number>>
  /** Debits, top-ups, adjustments and refunds since the start. */
  readonly moved: readonly MoneySum[]
}
