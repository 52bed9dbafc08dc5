/**
 * The records of the journal of calls (schema/journal/), as they are written and as the next start
 * reads them.
 */
import type { CallRecord, OpenCall, DialledCall } from '../contracts/call-record.ts'
import type { Tariff } from '../contracts/charging.ts'

/** Decisions at the end of a call. */
export interface EndTerms {
  readonly payerId: number | null
  readonly tariff: Tariff | null
  readonly costMicros: number
  /** The end is reported to an external OCS. */
  readonly isReported: boolean
}

/** The state with which an answered call continues after a crash. */
export interface SavedCallState {
  /** JSON without a line break or a tab; only call control reads it. */
  readonly text: string
  /** The text says what has changed since the state of the answer. Absent: it is all of a state. */
  readonly isChange?: true | undefined
  /** Absent: nothing is reserved for the call. */
  readonly grant?: SavedGrant | undefined
}

/** The reservation of a call; its price is stored with the answer. */
export interface SavedGrant {
  /** Null: the call is free. */
  readonly payerId: number | null
  /** Null: unlimited. */
  readonly maxSeconds: number | null
  /** Null: unlimited. */
  readonly grantedSeconds: number | null
  readonly amountMicros: number
  readonly isLastGrant: boolean
  /** The extension that calls; absent: the source is not an extension. */
  readonly extensionId?: number | undefined
  /**
   * The tenant of the call's source, for spend guards; null: it has none. Absent: another version
   * has saved it.
   */
  readonly sourceTenantId?: number | null | undefined
  /** False: the calling number names no payer. Absent: it may. */
  readonly mayNamePayer?: false | undefined
  /** No spend guard brakes it. */
  readonly isEmergencyNumber?: true | undefined
  /** The numbers that gateways would get instead of the called number. */
  readonly sentAs?: readonly string[] | undefined
}

/** A call that was open when the last run ended. */
export type JournalEntry = CutCall | EndedCall | UnansweredCall

export interface CutCall {
  readonly kind: 'cut'
  readonly callUuid: string
  readonly call: OpenCall
  readonly tariff: Tariff | null
  /** Time from the answer to the last heartbeat, by the steady clock. */
  readonly talkedMs: number
  /** Absent: the call has no state, or it is damaged. */
  readonly state?: RestorableState
}

/** The call has ended, and its record is not stored yet. */
interface EndedCall {
  readonly kind: 'ended'
  readonly callUuid: string
  readonly record: CallRecord
  readonly terms: EndTerms
}

export interface UnansweredCall {
  readonly kind: 'unanswered'
  readonly callUuid: string
  readonly call: DialledCall
}

/** Times by the steady clock of this process. */
export interface RestorableState extends Omit<SavedCallState, 'isChange'> {
  /** Changes since `text`, by the same process; absent: there are none. */
  readonly change?: string
  readonly answeredMs: number
  /** Added to times in the text. */
  readonly shiftMs: number
}

/** How long an answered call waits for its line; then it is rejected. */
export const JOURNAL_WAIT_MS = 2_000

/**
 * The row of `setting` that says that there is a journal; on a server, with the name of the
 * instance behind it.
 */
export const JOURNAL_OPEN = 'journal open'
