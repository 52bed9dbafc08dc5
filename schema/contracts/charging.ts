/**
 * A call's view of the online charging system (OCS): authorize before a call is set up, extend
 * before its grant runs out, report when it has ended. `engine/charging/ocs.ts` implements it in
 * process, `engine/charging/external/` over HTTP. Every expected outcome of a network or a wallet
 * is a value: nothing here throws.
 */
import type {
  CallCost,
  CallTags,
  CallRecord,
  MoneyLack,
  DialledCall,
  OpenCall,
} from './call-record.ts'
import type { ChangedPayers } from './changed-rows.ts'
import type { CallQuality, EntryKind } from './field-values.ts'
import type { Brake } from './limits.ts'
import type { Tariff } from './tariff.ts'

export type { Tariff } from './tariff.ts'

/** The reason why a call was refused that its payer could afford. */
export type OcsRefusal =
  /** Too many records wait for the database, or it cannot store any. */
  | 'records_waiting'
  | 'too_many_calls'
  /** The shared database has been unreachable for too long. */
  | 'database_away'
  /** The database did not report the available money in time. */
  | 'lease_unheard'
  /** The database did not report in time how much other instances use of a limit. */
  | 'limit_unheard'
  /** The database did not report in time how much is left of a cap. */
  | 'cap_unheard'
  /** Later calls have reserved the money obtained for this one, twice. */
  | 'lease_contended'

export interface AuthorizationRequest {
  readonly callUuid: string
  readonly caller: string
  readonly callee: string
  /** The customer of the call's source (a carrier, an extension); null: From may name one. */
  readonly customerId: number | null
  /**
   * Set: the payer must belong to this tenant, or to one of these (`payer_of_other_tenant`), and
   * From names customers of these only. A `customerId` may also be a customer of the platform,
   * which has set it. An external OCS knows no tenants.
   */
  readonly payerTenantId?: number | readonly number[] | null
  /** False: From names no payer (`no_payer` without `customerId`). Default: true. */
  readonly mayNamePayer?: boolean
  /** The extension that calls, for spend guards; absent or null: the source is not an extension. */
  readonly extensionId?: number | null
  /** Spend guards do not apply to it. Absent: an ordinary number. */
  readonly isEmergencyNumber?: boolean
  /** `callee` is a user name: it has the price of the empty prefix. */
  readonly isName?: boolean
  /**
   * The numbers by which the call of this payer is priced and guarded, of what gateways would get;
   * empty: `callee` alone. Absent: it goes to no gateway, or only another OCS decides.
   */
  readonly sentAs?: (customerId: number | null, tenantId: number | null) => readonly string[]
  /**
   * The routing number of a ported number (RFC 4694), in normal form: blocks and spend guards look
   * at it, too, and a plan may price by it. Absent: the called number has none.
   */
  readonly routingNumber?: string | undefined
  /** Tags that a hook has set, for events. Absent: none. */
  readonly tags?: CallTags | undefined
  /** Milliseconds UTC. The rate in force then is the call's rate to its end. */
  readonly startedAt: number
}

/** The payer and the price; copied into the call's record. */
export interface Account {
  readonly customerId: number | null
  readonly tenantId: number | null
  readonly ratePrefix: string | null
  readonly currency: string | null
  /** The OCS did not answer, and the fail mode allowed the call. */
  readonly isUnauthorizedByOcs: boolean
}

/**
 * The payer's money at the time of the decision: shown in the call's trace, never charged. Rounded
 * beyond 2^53.
 */
export interface Funds {
  readonly balanceMicros: number
  /** Balance plus credit, minus the reservations of calls. */
  readonly availableMicros: number
}

export type Verdict =
  /** `grantedSeconds` counts from the answer; Infinity: the call is free. */
  | {
      readonly kind: 'granted'
      readonly account: Account
      readonly grantedSeconds: number
      /** Absent: there is no payer, or another OCS knows. */
      readonly funds?: Funds | undefined
    }
  /** Any OCS answer but 200; `code` such as `insufficient_funds`, `unknown_caller`, `no_rate`. */
  | {
      readonly kind: 'denied'
      readonly code: string
      readonly account: Account | null
      readonly funds?: Funds | undefined
      /** Absent: it was not refused for money. */
      readonly lack?: MoneyLack | undefined
      /** The spend guard that denied it (`spend_guard`). */
      readonly capUuid?: string | undefined
      /** The subject of its sentence (`denialText`). */
      readonly detail?: string | undefined
    }
  /**
   * No answer, and the fail mode is `closed`; `by`: the reason why the OCS of this process refused
   * the call.
   */
  | { readonly kind: 'unreachable'; readonly retryAfterSeconds: number; readonly by?: OcsRefusal }

/** The answer that `authorize` would give; nothing is reserved or counted. */
export interface Forecast {
  readonly verdict: Verdict
  /** The price in force then; null: there is none. */
  readonly tariff: Tariff | null
  /** The price of a call of one minute; null: there is no price. */
  readonly minuteMicros: number | null
  /** The time that the payer's available money buys; Infinity: unlimited. 0: denied. */
  readonly longestSeconds: number
}

export type GrantExtension =
  /** The whole grant since the answer, not what was added. */
  | { readonly kind: 'granted'; readonly grantedSeconds: number }
  | { readonly kind: 'denied'; readonly code: string }

export interface RevokedCall {
  readonly callUuid: string
  /** Such as `customer_inactive`. */
  readonly code: string
}

/** An answered call of the last run that may continue: `resume` or `abandon` decides. */
export interface SavedEntry {
  readonly callUuid: string
  /** The call at the time of its answer. */
  readonly call: OpenCall
  /** The last whole state. */
  readonly state: string
  /** Changes since `state`; absent: there are none. */
  readonly change?: string | undefined
  /** Added to the times in both, which are by the steady clock of another process. */
  readonly shiftMs: number
  /** The last moment at which it was known to go on. */
  readonly aliveAt: number
}

/** The calls that were open when the last run ended. */
export interface RecoveredCalls {
  /** Answered calls that are closed now. */
  readonly recoveredCalls: number
  /** Calls that were dialled: they have a record with disposition `FAILED`. */
  readonly unansweredCalls: number
  /** Not closed. */
  readonly saved: readonly SavedEntry[]
}

/** Never rejects, and settles within `QUALITY_WAIT_MS`. Undefined: nothing is known. */
export type Quality = Promise<CallQuality | undefined>

export interface Charging {
  /** Reserves the first part of a call. Safe to repeat: a known `callUuid` gets the same answer. */
  authorize(request: AuthorizationRequest): Promise<Verdict>
  /**
   * Asks for more than `usedSeconds` before the grant runs out. Denied: nothing is added, and the
   * call may use up its grant. Safe to repeat: the same request again adds nothing.
   */
  extend(callUuid: string, usedSeconds: number): Promise<GrantExtension>
  /**
   * A call begins to be dialled: a crash before its answer gives it a record (`FAILED`). Written
   * within 10 ms; the call does not wait for it.
   */
  begun(call: DialledCall): void
  /**
   * Stores a call that is about to be answered. Resolves with true when no crash can lose it: only
   * then may the caller get the answer. False: not stored within `JOURNAL_WAIT_MS`, and not later.
   * Never rejects.
   *
   * @param state the state with which call control continues after a crash: JSON in one line,
   * without tabs.
   */
  answered(call: OpenCall, state?: string): Promise<boolean>
  /**
   * Replaces the state of an answered call, within 10 ms. `isChange`: it says only what has changed
   * since the state of the answer, which stays.
   */
  changed(callUuid: string, state: string, isChange?: true): void
  /**
   * Continues an answered call of the last run: its reservation is made again, at the price of its
   * start. False: there is no such call.
   */
  resume(callUuid: string): boolean
  /** Closes an answered call of the last run at its last heartbeat. */
  abandon(callUuid: string): void
  /**
   * Notes that these answered calls were alive at `nowMs`; called at least every 10 s. Returns
   * those that must end now, because their customer was deactivated.
   */
  alive(callUuids: readonly string[], nowMs: number): readonly RevokedCall[]
  /**
   * Notes that this process runs, since `sinceMs`; called every second while there are calls. After
   * a crash its calls were alive until then: those that began since `sinceMs`, or were named by
   * `alive` since.
   */
  running(nowMs: number, sinceMs: number): void
  /**
   * Settles an ended call: stores its record, debits its cost and removes its journal entry in one
   * transaction, and releases its reservation. Resolves when that is durable, with what it has
   * cost; undefined: nobody is charged here. Safe to repeat: one record per `callUuid`.
   *
   * @param safe called once: when no crash can lose the end, or after `JOURNAL_WAIT_MS`.
   * @param quality of the call's media, where it is known in a moment: the journal has the end at
   * once, the database waits for it. A crash in between loses the quality alone.
   */
  report(record: CallRecord, safe?: () => void, quality?: Quality): Promise<CallCost | undefined>
}

/**
 * The online charging system (OCS) of this process as the API sees it, as plain data: customers and
 * their money, rates, and charging for nodes. `engine/charging/ocs.ts` implements it.
 */
export interface OcsPort extends NodeCharging, MoneyPort, RatesPort {
  /**
   * The cost of a live call if it ended after `seconds` of talk. Free calls: 0, no currency and no
   * tariff.
   */
  costSoFar(callUuid: string, seconds: number): CostSoFar
  /** Takes over spend guards as they are stored now, for calls that start once it resolves. */
  reloadSpendingCaps(): Promise<void>
  /**
   * The prefixes dialled in place of `+`, as spend guards compare numbers; undefined: the
   * installation names none.
   */
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
   * Settles a node's report; `body` is the report itself, stored for audit. Resolves when it is
   * durable, or with `unstored` when that takes too long: the node may report again.
   */
  reportFromNode(record: CallRecord, body: string): Promise<ReportAnswer>
}

interface MoneyPort {
  readonly ledger: LedgerPort
  /**
   * Moves money, in the transaction of the caller or in one of its own: the next authorization
   * after its commit sees it. Safe to repeat by kind and reference. A deduction always has a
   * transaction of its own.
   */
  move(move: MoneyMove): Promise<MoneyMoveResult>
  /** Undefined: there is no such customer. */
  balanceOf(customerId: number): Balance | undefined
  /**
   * Takes over customers, numbers and balances as they are stored now; undefined: all of them.
   * Reservations of live calls stay. Resolves when they apply.
   */
  reloadCustomers(changed?: ChangedPayers): Promise<void>
}

/** Times that decide the price of a call, in milliseconds UTC. */
export interface PastCallTimes {
  /** The rates in force then count. */
  readonly at: number
  /** The periods are those after the start, until the answer. */
  readonly startedAt: number
  readonly answeredAt: number
  /** The periods are those of the clock of this customer; absent: of the plan. */
  readonly customerId?: number | null | undefined
}

interface RatesPort {
  /**
   * The rate of a plan for a number at a time, and what `seconds` at this rate cost.
   *
   * @param customerId as in `PastCallTimes`.
   */
  quote(
    planId: number,
    number: string,
    seconds: number,
    at: number,
    customerId?: number | null,
  ): Quote | undefined
  /** The same for a call that is over, in the periods of its own time. */
  pastQuote(
    planId: number,
    number: string,
    seconds: number,
    times: PastCallTimes,
  ): Quote | undefined
  /** Takes over the rates as they are stored now, for calls that start once it resolves. */
  reloadRates(): Promise<void>
  /** `reloadRates` for one prefix of a plan. */
  reloadPrefix(planId: number, prefix: string): Promise<void>
  /** `reloadRates` for one plan. Resolves with the number of its rates. */
  reloadPlan(planId: number): Promise<number>
  /** Takes over the zones, periods and holidays of plans. */
  reloadTimes(): Promise<void>
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
  /** No money can be promised now: the shared database has been unreachable for too long. */
  | 'ocs_unreachable'

export type NodeVerdict =
  | NodeGrant
  | {
      readonly kind: 'denied'
      readonly code: DenialCode
      /** The spend guard that denied it. */
      readonly capUuid?: string | undefined
      /** The subject of its sentence (`denialText`). */
      readonly detail?: string | undefined
    }
  /** A call that cannot be decided or billed does not start. */
  | { readonly kind: 'overloaded'; readonly by: OcsRefusal }

export interface NodeGrant {
  readonly kind: 'granted'
  readonly callUuid: string
  /** Null: the call is free (an unknown caller that is allowed). */
  readonly customerId: number | null
  readonly tariff: Tariff | null
  /** Since the answer; Infinity when more talk costs nothing. */
  readonly grantedSeconds: number
  readonly reservedMicros: number
  /** The longest duration that the payer can afford now. */
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
  /** Another duration of this call was accepted before; this report is stored for audit. */
  | { readonly kind: 'conflict' }
  /** The database cannot store it at present. */
  | { readonly kind: 'unstored' }

/**
 * The only way to move money: an append-only entry and the wallet's balance, in the caller's
 * transaction.
 */
export interface LedgerPort {
  post(entry: LedgerEntry): Promise<unknown>
  /** Ends the depletion of a customer's wallet: a higher credit limit leaves something to spend. */
  endDepletion(customerId: number): Promise<void>
}

export interface LedgerEntry {
  readonly walletId: number
  readonly kind: EntryKind
  /** Signed: added to the balance. */
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
  /**
   * A deduction is owed where the wallet does not have it. It may be in the caller's transaction;
   * what instances hold for live calls stays with these.
   */
  readonly mayBeOwed?: true
}

export type MoneyMoveResult =
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

/** Money moved since the start, by kind and currency. */
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
  /** Its plan prices a call by the routing number, where the called number has one. */
  readonly isByRoutingNumber?: true
  /** The period of its plan in which it applies; absent: whenever none with a price holds. */
  readonly period?: string
  /** Milliseconds UTC, inclusive; null: no start. */
  readonly effectiveFrom: number | null
  /** Exclusive; null: no end. */
  readonly effectiveTo: number | null
}

export interface Quote {
  readonly rate: Rate
  readonly costMicros: number
  /** Their sum, rounded as the plan rounds, is the cost. Empty for 0 seconds. */
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
  /** Counts by `granted`, `overloaded` or denial code. */
  readonly verdicts: Readonly<Record<string, number>>
  /** Debits, top-ups, adjustments and refunds since the start. */
  readonly moved: readonly MoneySum[]
}

/**
 * Exit codes: what is dialled in place of `+`, such as `00` in Europe and `011` in North America.
 * Which digits are one depends on the place: `0114` is +4 in Denver, and Sheffield in London. So an
 * installation names its own (`EXIT_CODES`), and a number that begins with one of them becomes the
 * number with `+`, before it is priced, blocked, routed or counted. The longest is first.
 */
export type ExitCodes = readonly string[]
