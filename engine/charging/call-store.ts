/**
 * What stores ended calls, each once, whatever is repeated: its record, its debit, its events, in one transaction.
 * `settlement/local-calls.ts` does it on the SQLite of this process, `settlement/server-calls.ts` on PostgreSQL.
 */
import type { CallRecord } from '../../schema/call-record.ts'
import type { ReportAnswer } from '../../schema/contracts/charging.ts'
import type { OutgoingEvent } from '../../schema/contracts/webhook-events.ts'
import type { Posting } from './ledger/posting.ts'
import type { Charge } from './settlement/charge.ts'

/** An ended call, and what comes of it. */
export interface EndedCall {
  readonly record: CallRecord
  readonly charge: Charge
  /** Present: a node has reported it, and gets the answer of the first report again. */
  readonly report?: NodeReport
  /** Present: the body of its report to an external OCS, which waits in the outbox. */
  readonly outgoing?: string
}

export interface NodeReport {
  /** What the node sent, kept when it conflicts. */
  readonly body: string
  /** Milliseconds UTC. */
  readonly at: number
}

/** What the commit has made of it. */
export interface StoredCall {
  /** Absent: nothing was debited. */
  readonly posting?: Posting | undefined
  /** Of a node's report. */
  readonly answer?: ReportAnswer | undefined
}

export interface StoreCall {
  /** Follows the commit. */
  readonly done: (stored: StoredCall) => void
  /** The database can never store it. */
  readonly refused: (error: unknown) => void
  /** The journal has it meanwhile: it may wait for others. */
  readonly mayWait: boolean
}

export interface CallStore {
  /** Which of these calls have a record. */
  stored(callUuids: readonly string[]): Promise<ReadonlySet<string>>
  add(call: EndedCall, how: StoreCall): void
  /** Writes an event of a call that goes on, soon. */
  announce(event: OutgoingEvent): void
  /**
   * As `announce`, for a caller that must not get its answer unless the event is stored, too. Resolves with false
   * when it was not within `JOURNAL_WAIT_MS`, and will not be.
   */
  announced(event: OutgoingEvent): Promise<boolean>
  /** Calls and events that are not stored yet. */
  readonly waiting: number
  /** Stores what waits now. False: it could not be stored, and waits on. */
  flush(): Promise<boolean>
  /** As `flush`, before it returns; for a process that is about to crash. Nothing where that cannot be. */
  flushNow(): void
  /** What is lost if the process ends now; not what the journal has. */
  unwritten(): readonly unknown[]
  stats(): {
    readonly waiting: number
    readonly commits: number
    readonly failures: number
    /** Events that were not stored, and will not be, since the start. */
    readonly lostEvents: number
  }
}
