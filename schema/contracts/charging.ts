/**
 * A call's view of the online charging system (OCS): ask before a call is set up, ask again before its
 * grant runs out, report when it has ended. `engine/charging/ocs.ts` implements it in process,
 * `engine/charging/external/` over HTTP. Every expected outcome is a value: nothing here throws for what
 * a network or a wallet may do.
 */
import type { CallRecord } from '../call-record.ts'
import type { OpenCall } from '../call-journal.ts'

export interface AuthorizationRequest {
  readonly callUuid: string
  readonly caller: string
  readonly callee: string
  /** The customer that the source of the call already determines (a carrier's, an extension's). */
  readonly customerId: number | null
  /**
   * Set: a customer of another tenant (or of none of several) is not made to pay
   * (`payer_of_other_tenant`). An OCS elsewhere knows no tenants.
   */
  readonly payerTenantId?: number | readonly number[] | null
  /** False: without `customerId` there is no payer, whatever number calls (`no_payer`). Default: true. */
  readonly mayNamePayer?: boolean
  /** Milliseconds UTC. */
  readonly startedAt: number
}

/** Who pays, and at what price; copied into the call's record. */
export interface Account {
  readonly customerId: number | null
  readonly tenantId: number | null
  readonly ratePrefix: string | null
  readonly currency: string | null
  /** The OCS did not answer and the fail mode let the call pass. */
  readonly isUnauthorizedByOcs: boolean
}

export type Verdict =
  /** `grantedSeconds` counts from the answer; Infinity when the call costs nothing. */
  | { readonly kind: 'granted'; readonly account: Account; readonly grantedSeconds: number }
  /** Any OCS answer but 200; `code` such as `insufficient_funds`, `unknown_caller`, `no_rate`. */
  | { readonly kind: 'denied'; readonly code: string; readonly account: Account | null }
  /** No answer, and the fail mode is `closed`. */
  | { readonly kind: 'unreachable'; readonly retryAfterSeconds: number }

export type Extension =
  /** The whole grant since the answer, not the addition. */
  | { readonly kind: 'granted'; readonly grantedSeconds: number }
  | { readonly kind: 'denied'; readonly code: string }

export interface RevokedCall {
  readonly callUuid: string
  /** Such as `customer_inactive`. */
  readonly code: string
}

export interface Charging {
  /** Reserves the first part of a call. Safe to repeat: a known `callUuid` gets the same answer. */
  authorize(request: AuthorizationRequest): Promise<Verdict>
  /**
   * Asks for more than `usedSeconds`; called before the grant runs out. Denied: nothing is added, and
   * the call may use up what it was granted. The same question again adds nothing.
   */
  extend(callUuid: string, usedSeconds: number): Promise<Extension>
  /**
   * The call is about to be answered. Resolves with true when a crash can no longer lose it, and never
   * rejects; only then may the caller hear of the answer. False: that was not possible in
   * `JOURNAL_WAIT_MS`, and nothing of it is stored.
   */
  answered(call: OpenCall): Promise<boolean>
  /**
   * These answered calls were alive at `nowMs`; at least every 10 s. Answers which of them must end
   * now, because their customer may call no more.
   */
  alive(callUuids: readonly string[], nowMs: number): readonly RevokedCall[]
  /**
   * The call has ended: stores its record, takes the cost and forgets reservation and journal in one
   * transaction. Resolves when that is durable. Safe to repeat: the record is unique by `callUuid`.
   */
  report(record: CallRecord): Promise<void>
}
