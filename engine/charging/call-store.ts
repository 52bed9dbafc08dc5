/**
 * Stores ended calls, each once, whatever is repeated: its record, its debit, its events, in one
 * transaction. Until that is committed, the journal has the call.
 */
import type { CallRecord } from '../../schema/contracts/call-record.ts'
import type { OutgoingEvent } from '../../schema/contracts/engine.ts'
import type { Schedule } from '../../schema/clock.ts'
import { type QueuedWrite, WriteQueue } from '../../schema/storage/write-queue.ts'
import { type BatchDeps, BatchWriter, type EndedCall, type StoredCall } from './settlement/batch.ts'

interface StoreCall {
  /** Follows the commit. */
  readonly done: (stored: StoredCall) => void
  /** The database can never store it. */
  readonly refused: (error: unknown) => void
  /** The journal has it meanwhile: it may wait for others. */
  readonly mayWait: boolean
}

export interface CallStoreDeps extends BatchDeps {
  readonly schedule: Schedule
  /** Nothing is lost meanwhile. */
  readonly onFailure: (error: unknown, waiting: number) => void
  /**
   * Records wait for these wallets, which another transaction has locked; none: they wait no more.
   */
  readonly onLockedWallets?: (ids: readonly number[]) => void
  /**
   * Events of calls are lost. Called for the first of an outage, and for those that wait when the
   * process ends.
   */
  readonly onLostEvents?: (count: number) => void
}

/** The journal has what waits, so that it is written in few, large batches. */
const RECORD_WAIT_MS = 100
/**
 * The newest of more events are dropped: they tell of calls that go on, and of calls that were
 * refused.
 */
const MAX_EVENTS = 20_000

interface QueuedCall extends QueuedWrite<StoredCall> {
  readonly call: EndedCall
}

interface QueuedEvent extends QueuedWrite<undefined> {
  readonly event: OutgoingEvent
}

export class CallStore {
  readonly #deps: CallStoreDeps
  readonly #batches: BatchWriter
  readonly #calls: WriteQueue<QueuedCall, StoredCall>
  readonly #events: WriteQueue<QueuedEvent, undefined>
  #lostEvents = 0
  #isLosing = false

  constructor(deps: CallStoreDeps) {
    this.#deps = deps
    this.#batches = new BatchWriter(deps)
    this.#calls = new WriteQueue({
      ...deps,
      maxWaiting: Infinity,
      run: (queued) => this.#batches.write(queued.map(({ call }) => call)),
      rows: this.#batches.rowsOf(({ call }) => call, deps.onLockedWallets ?? (() => undefined)),
    })
    this.#events = new WriteQueue({
      ...deps,
      maxWaiting: MAX_EVENTS,
      run: async (queued) => {
        await deps.sink?.writeAll(queued.map(({ event }) => event))
        return () => queued.map(() => undefined)
      },
    })
  }

  /** Which of these calls have a record. */
  stored(callUuids: readonly string[]): Promise<ReadonlySet<string>> {
    return this.#batches.stored(callUuids)
  }

  add(call: EndedCall, { done, refused, mayWait }: StoreCall): void {
    this.#calls.add({
      call,
      done,
      refused,
      key: call.record.callUuid,
      waitMs: mayWait ? RECORD_WAIT_MS : undefined,
    })
  }

  /** Writes an event of a call that goes on, soon. */
  announce(event: OutgoingEvent): void {
    this.#events.add({
      event,
      waitMs: RECORD_WAIT_MS,
      done: () => (this.#isLosing = false),
      refused: () => this.#lose(1),
    })
  }

  #lose(count: number): void {
    if (count === 0) return
    if (!this.#isLosing) this.#deps.onLostEvents?.(count)
    this.#isLosing = true
    this.#lostEvents += count
  }

  /** Calls that are not stored yet. */
  get waiting(): number {
    return this.#calls.waiting
  }

  /** Stores what waits now. False: it could not be stored, and waits on. */
  async flush(): Promise<boolean> {
    const areStored = await Promise.all([this.#calls.flush(), this.#events.flush()])
    return areStored.every(Boolean)
  }

  /**
   * Stores what waits; events that cannot be are lost. Resolves with the records that cannot be.
   */
  async stop(): Promise<readonly CallRecord[]> {
    await this.flush()
    this.#isLosing = false
    this.#lose(this.#events.waiting)
    return this.#calls.unwritten().map(({ call }) => call.record)
  }

  stats() {
    const { waiting, commits, failures } = this.#calls.stats()
    /** Events that were not stored, and will not be, since the start. */
    return { waiting, commits, failures, lostEvents: this.#lostEvents }
  }
}
