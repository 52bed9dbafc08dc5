/** The record of an ended call, and the part of it that is known while the call goes on. */
import type { Attestation, PresentedIdentity } from './caller-identity.ts'
import type { CallQuality, Direction, Disposition, HangupParty } from './field-values.ts'
import type { Verification, Verstat } from './stir.ts'
import type { BoughtPrice, CarrierCost, Tariff } from './tariff.ts'

/**
 * One destination that was tried. Times in milliseconds UTC; status 0 when there was no response.
 */
export interface Attempt {
  readonly destination: string
  readonly status: number
  readonly reason: string
  /** The caller as it was shown; absent: no rules said anything. */
  readonly presented?: PresentedCaller | undefined
  /** Both numbers as they were sent; absent: an earlier version tried it, or nothing was sent. */
  readonly sent?: SentNumbers | undefined
  readonly startedAt: number
  readonly endedAt: number
}

/** The user parts of the Request-URI and of From. */
export interface SentNumbers {
  readonly called: string
  /** Empty: it was anonymous. */
  readonly caller: string
}

/** A part of the decision about the caller of an attempt (`PresentedIdentity`). */
export type PresentedCaller = Pick<PresentedIdentity, 'number' | 'asserted' | 'attestation' | 'why'>

/** The money that a refused call needed, and the money that there was. Neither is charged. */
export interface MoneyLack {
  /** The cost of its first second, with connect fee and first increment. */
  readonly requiredMicros: number
  /**
   * Available in the wallet with its credit, or within the limit of the day. Negative: a debt.
   * Rounded beyond 2^53.
   */
  readonly availableMicros: number
}

/** Values by name that the operator's own code has given to a call. */
export type CallTags = Readonly<Record<string, string>>

/** The record of an ended call (CDR); `cdr` is its stored form. */
export interface CallRecord {
  readonly callUuid: string
  readonly callId: string
  readonly direction: Direction
  readonly callerNumber: string
  readonly callerName: string | null
  readonly calledNumber: string
  /** The called number as it came; absent: the call began here, or an earlier version had it. */
  readonly dialledNumber?: string | undefined
  readonly startedAt: number
  readonly answeredAt: number | null
  readonly endedAt: number
  readonly postDialDelayMs: number | null
  /** Charged whole seconds (`billedSeconds`); 0 when not answered. */
  readonly billsec: number
  readonly disposition: Disposition
  readonly sipCode: number
  readonly hangupCause: string
  readonly hangupBy: HangupParty
  readonly denialCode: string | null
  /** The sentence of `denialCode`; absent: the record has only the code. */
  readonly denialText?: string | undefined
  readonly setId: number | null
  readonly node: string | null
  /**
   * The instance that had the call. Absent: an earlier version began it, or another system reported
   * it.
   */
  readonly instance?: string | undefined
  readonly carrier: string | null
  readonly attempts: readonly Attempt[]
  /** Who may see it: the tenant of the payer, else of the source, else of the destination. */
  readonly tenantId: number | null
  /**
   * The payer is the platform's: the tenant does not see the price. Not stored: the customer says
   * it.
   */
  readonly isPaidByPlatform?: true
  readonly customerId: number | null
  readonly ratePrefix: string | null
  readonly currency: string | null
  readonly sourceAddress: string
  readonly isRecovered: boolean
  readonly isUnauthorizedByOcs: boolean
  /** An emergency call, or a call within a tenant: not authorized and not charged. Not stored. */
  readonly isFree?: boolean
  /** Absent: it was not refused for money. A crash before it is stored loses it. */
  readonly lack?: MoneyLack | undefined
  /** Tags that a hook has set; absent: none. */
  readonly tags?: CallTags | undefined
  /** The proof that Identity headers gave; absent: nobody has looked at them. */
  readonly verification?: Verification | undefined
  readonly verstat?: Verstat | undefined
  /** As a verified caller's network says, else as we have signed the call; absent: neither. */
  readonly attestation?: Attestation | undefined
  /** The quality of its media; absent: unknown. */
  readonly quality?: CallQuality | undefined
  /** Absent: no carrier has answered it, or its price is not known. */
  readonly carrierCost?: CarrierCost | undefined
}

/**
 * Returns the charged seconds of an answered call: rounded up to whole seconds, and at least one,
 * so that connect fee and first increment are always due (SPECIFICATION.md §13.1).
 */
export const billedSeconds = (talkedMs: number): number => Math.max(1, Math.ceil(talkedMs / 1_000))

/** Cost and currency of a call; null when it is not charged. */
export interface CallCost {
  readonly costMicros: number
  readonly currency: string | null
  /** The price by which it was rated; absent: nobody paid here. */
  readonly tariff?: Tariff | null | undefined
}

/** The fields of a call record that are known at the answer. */
export type OpenCall = Omit<
  CallRecord,
  | 'answeredAt'
  | 'endedAt'
  | 'billsec'
  | 'disposition'
  | 'sipCode'
  | 'hangupCause'
  | 'hangupBy'
  | 'isRecovered'
  | 'carrierCost'
> & {
  readonly answeredAt: number
  /** Absent: no carrier has answered it, or its price is not known. */
  readonly bought?: BoughtPrice | undefined
}

/** A call before its answer. */
export type DialledCall = Omit<OpenCall, 'answeredAt' | 'bought'>
