/**
 * A call's view of the online charging system (OCS): ask before a call is set up, ask again before its
 * grant runs out, report when it has ended. `engine/charging/ocs.ts` implements it in process,
 * `engine/charging/external/` over HTTP. Every expected outcome is a value: nothing here throws for what
 * a network or a wallet may do.
 */
import type { CallRecord, MoneyLack } from '../call-record.ts'
import type { BegunCall, OpenCall, Tariff } from '../journal/call-journal.ts'
import type { CallQuality } from './media.ts'

/** What has refused a call that its payer may afford: nothing is wrong with the call. */
export type Guard =
  /** Too many records wait for the database, or it cannot store any. */
  | 'records_waiting'
  | 'too_many_calls'
  /** The database that several processes share has been away for too long. */
  | 'database_away'
  /** It has not said in time what money there is. */
  | 'lease_unheard'
  /** Nor what other nodes use of a limit. */
  | 'limit_unheard'
  /** Nor what is left of a cap. */
  | 'cap_unheard'
  /** Calls that came later have reserved what was leased for this one, twice. */
  | 'lease_contended'

export interface AuthorizationRequest {
  readonly callUuid: string
  readonly caller: string
  readonly callee: string
  /** The customer of the call's source (a carrier, an extension); null: From may name one. */
  readonly customerId: number | null
  /**
   * Set: the payer must belong to this tenant, or to one of these (`payer_of_other_tenant`), and From names
   * customers of these only. A `customerId` may also be a customer of the platform, which has set it. An
   * external OCS knows no tenants.
   */
  readonly payerTenantId?: number | readonly number[] | null
  /** False: From names no payer (`no_payer` without `customerId`). Default: true. */
  readonly mayNamePayer?: boolean
  /** The extension that calls, for spend guards; absent or null: the source is none. */
  readonly extensionId?: number | null
  /** No spend guard brakes it. Absent: it is an ordinary number. */
  readonly isEmergencyNumber?: boolean
  /** `callee` is a user name: it has the price of the empty prefix. */
  readonly isName?: boolean
  /**
   * The numbers by which the call of this payer is priced and guarded, of what gateways would get; empty: `callee` alone.
   * Absent: it goes to no gateway, or only another OCS decides.
   */
  readonly sentAs?: (customerId: number | null, tenantId: number | null) => readonly string[]
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

/** What the payer had when a call was decided: shown in the call's trace, never charged. Rounded beyond 2^53. */
export interface Funds {
  readonly balanceMicros: number
  /** Balance and credit, without what is reserved for calls. */
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
      /** Which spend guard has denied it (`spend_guard`). */
      readonly guardUuid?: string | undefined
      /** What its sentence is about (`denialText`). */
      readonly detail?: string | undefined
    }
  /** No answer, and the fail mode is `closed`; `by`: of the OCS in this process, what has refused the call. */
  | { readonly kind: 'unreachable'; readonly retryAfterSeconds: number; readonly by?: Guard }

/** What `authorize` would answer, of which nothing is reserved or counted. */
export interface Foreseen {
  readonly verdict: Verdict
  /** In force then; null: there is no price. */
  readonly tariff: Tariff | null
  /** What all of the payer's available money would buy; Infinity: without limit. 0: denied. */
  readonly longestSeconds: number
}

export type Extension =
  /** The whole grant since the answer, not what was added. */
  | { readonly kind: 'granted'; readonly grantedSeconds: number }
  | { readonly kind: 'denied'; readonly code: string }

export interface RevokedCall {
  readonly callUuid: string
  /** Such as `customer_inactive`. */
  readonly code: string
}

/** An answered call of the last run that may go on: `resume` or `abandon` decides. */
export interface SavedEntry {
  readonly callUuid: string
  /** As it was when it was answered. */
  readonly call: OpenCall
  /** As it was given last. */
  readonly state: string
  /** To be added to the times in `state`, which are by the steady clock of another process. */
  readonly shiftMs: number
  /** Its last sign of life. */
  readonly aliveAt: number
}

/** What a start found of the last run. */
export interface LeftCalls {
  /** Answered calls that are closed now. */
  readonly recoveredCalls: number
  /** Calls that were dialled: they have a record with disposition `FAILED`. */
  readonly unansweredCalls: number
  /** Not closed. */
  readonly saved: readonly SavedEntry[]
}

/** Never rejects, and is there within `QUALITY_WAIT_MS`. Undefined: nothing is known. */
export type Quality = Promise<CallQuality | undefined>

export interface Charging {
  /** Reserves the first part of a call. Safe to repeat: a known `callUuid` gets the same answer. */
  authorize(request: AuthorizationRequest): Promise<Verdict>
  /**
   * Asks for more than `usedSeconds` before the grant runs out. Denied: nothing is added, and the call may
   * use up its grant. Safe to repeat: the same request again adds nothing.
   */
  extend(callUuid: string, usedSeconds: number): Promise<Extension>
  /**
   * A call begins to be dialled: a crash before its answer gives it a record (`FAILED`). Written within 10 ms;
   * the call does not wait for it.
   */
  begun(call: BegunCall): void
  /**
   * Stores a call that is about to be answered. Resolves with true when no crash can lose it: only then may
   * the caller get the answer. False: not stored within `JOURNAL_WAIT_MS`, and not later. Never rejects.
   *
   * @param state what call control needs to go on with it after a crash: JSON in one line, without tabs.
   */
  answered(call: OpenCall, state?: string): Promise<boolean>
  /** Replaces the state of an answered call, within 10 ms. */
  changed(callUuid: string, state: string): void
  /**
   * Goes on with an answered call of the last run: what it held is reserved again, at the price of its start.
   * False: there is no such call.
   */
  resume(callUuid: string): boolean
  /** Closes an answered call of the last run at its last sign of life. */
  abandon(callUuid: string): void
  /**
   * Notes that these answered calls were alive at `nowMs`; called at least every 10 s. Returns those that must
   * end now, because their customer was deactivated.
   */
  alive(callUuids: readonly string[], nowMs: number): readonly RevokedCall[]
  /**
   * Settles an ended call: stores its record, debits its cost and removes its journal entry in one transaction,
   * and releases its reservation. Resolves when that is durable. Safe to repeat: one record per `callUuid`.
   *
   * @param safe called once: when no crash can lose the end, or after `JOURNAL_WAIT_MS`.
   * @param quality of the call's media, where it is known in a moment: the journal has the end at once, the database
   * waits for it. A crash in between loses the quality alone.
   */
  report(record: CallRecord, safe?: () => void, quality?: Quality): Promise<void>
}
