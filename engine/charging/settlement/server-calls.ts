/**
 * Ended calls in PostgreSQL: many in one transaction of a few statements. Until it is committed the journal has them.
 * Safe to repeat, also when the answer to a COMMIT is lost: a record has a unique call uuid, a debit a unique
 * reference, and a call that has a record is not charged again.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { OutgoingEvent } from '../../../schema/contracts/webhook-events.ts'
import { lockedTransaction } from '../../../schema/sql/query.ts'
import { isNews, isViolation, retryDelayMs } from '../../../schema/storage/storage.ts'
import type { CallStore, EndedCall, StoreCall } from '../call-store.ts'
import type { ServerCallsDeps } from './store-deps.ts'
import { ServerBatch, type Settled } from './server-batch.ts'

/** The journal has what waits, so that it is written in few, large batches. */
const RECORD_WAIT_MS = 100
const OTHER_WAIT_MS = 10
const BATCH = 500
/** The oldest of more events are dropped: they tell of calls that go on, and of calls that were refused. */
const MAX_EVENTS = 20_000

interface Pending extends StoreCall {
  readonly call: EndedCall
}

export class ServerCalls implements CallStore {
  readonly #deps: ServerCallsDeps
  readonly #batch: ServerBatch
  readonly #outside = AsyncLocalStorage.snapshot()
  #calls: Pending[] = []
  #events: OutgoingEvent[] = []
  #inWrite = 0
  /** Calls had no place in the batch that is written. */
  #isLeft = false
  #last: Promise<boolean> = Promise.resolve(true)
  #timer: { readonly waitMs: number; readonly cancel: () => void } | undefined
  #isStarted = false
  #failures = 0
  #commits = 0
  #lostEvents = 0
  #isLosing = false

  constructor(deps: ServerCallsDeps) {
    this.#deps = deps
    this.#batch = new ServerBatch(deps)
  }

  /** A database that was moved here from SQLite has none: one that has some is not moved. */
  stored(callUuids: readonly string[]): Promise<ReadonlySet<string>> {
    return this.#batch.stored(callUuids)
  }

  add(call: EndedCall, how: StoreCall): void {
    this.#calls.push({ call, ...how })
    this.#writeWithin(how.mayWait ? RECORD_WAIT_MS : OTHER_WAIT_MS)
  }

  announce(event: OutgoingEvent): void {
    this.#events.push(event)
    if (this.#events.length > MAX_EVENTS) this.#lose(this.#events.splice(0, 1).length)
    this.#writeWithin(RECORD_WAIT_MS)
  }

  /** No answer waits for a server. */
  announced(event: OutgoingEvent): Promise<boolean> {
    this.announce(event)
    return Promise.resolve(true)
  }

  get waiting(): number {
    return this.#calls.length + this.#inWrite
  }

  async flush(): Promise<boolean> {
    while (this.waiting > 0 || this.#events.length > 0) if (!(await this.#writeNext())) return false
    this.#cancelTimer()
    return true
  }

  flushNow(): void {
    // The journal has what waits.
  }

  /** The journal has the calls. Events are counted: they tell of what goes on. */
  unwritten(): readonly unknown[] {
    this.#isLosing = false
    this.#lose(this.#events.splice(0).length)
    return []
  }

  #lose(count: number): void {
    if (count === 0) return
    if (!this.#isLosing) this.#deps.onLostEvents?.(count)
    this.#isLosing = true
    this.#lostEvents += count
  }

  stats(): ReturnType<CallStore['stats']> {
    const lostEvents = this.#lostEvents
    return { waiting: this.waiting, commits: this.#commits, failures: this.#failures, lostEvents }
  }

  #writeWithin(waitMs: number): void {
    if (this.#failures > 0 || this.#isStarted) return
    if (this.#calls.length >= BATCH) void this.#writeNext()
    else if (this.#timer === undefined || this.#timer.waitMs > waitMs) this.#writeAfter(waitMs)
  }

  #writeAfter(waitMs: number): void {
    this.#cancelTimer()
    const write = (): void => {
      this.#timer = undefined
      void this.#writeNext()
    }
    this.#timer = { waitMs, cancel: this.#deps.schedule(write, waitMs) }
  }

  #cancelTimer(): void {
    this.#timer?.cancel()
    this.#timer = undefined
  }

  /** One batch at a time. Never rejects. */
  #writeNext(): Promise<boolean> {
    this.#cancelTimer()
    this.#isStarted = true
    this.#last = this.#last.then(() => this.#outside(() => this.#writeBatch()))
    return this.#last
  }

  async #writeBatch(): Promise<boolean> {
    const calls = this.#takeCalls()
    const events = this.#events.splice(0, BATCH)
    this.#inWrite = calls.length
    const isStored = await this.#write(calls, events)
    this.#inWrite = 0
    this.#isStarted = false
    const isMore = this.#calls.length > 0 || this.#events.length > 0
    if (isStored && isMore && this.#timer === undefined) this.#writeAfter(this.#restWaitMs)
    return isStored
  }

  /**
   * What came while a batch was written waits as all others do: small batches cost as many statements as large ones.
   * What was left by that batch has waited.
   */
  get #restWaitMs(): number {
    if (this.#calls.length >= BATCH) return 1
    const isUrgent = this.#isLeft || this.#calls.some(({ mayWait }) => !mayWait)
    return isUrgent ? OTHER_WAIT_MS : RECORD_WAIT_MS
  }

  /** Each call once: the second report of one sees what the first has stored. */
  #takeCalls(): readonly Pending[] {
    const taken = new Map<string, Pending>()
    const rest: Pending[] = []
    for (const pending of this.#calls) {
      const { callUuid } = pending.call.record
      if (taken.size >= BATCH || taken.has(callUuid)) rest.push(pending)
      else taken.set(callUuid, pending)
    }
    this.#calls = rest
    this.#isLeft = rest.length > 0
    return [...taken.values()]
  }

  /** What is not stored waits again, before all others. */
  async #write(calls: readonly Pending[], events: readonly OutgoingEvent[]): Promise<boolean> {
    if (calls.length === 0 && events.length === 0) return true
    let settled: Settled
    try {
      settled = await lockedTransaction(this.#deps.store, () =>
        this.#batch.write(
          calls.map(({ call }) => call),
          events,
        ),
      )
    } catch (error) {
      if (!isViolation(error)) return this.#tryLater(calls, events, error)
      return this.#writeApart(calls, events, error)
    }
    this.#failures = 0
    this.#isLosing = false
    this.#commits += 1
    const { stored, spent, beyond } = settled
    this.#deps.onSettled(spent, beyond)
    for (const [index, { done }] of calls.entries()) done(stored[index] ?? {})
    return true
  }

  /** Something of it can never be stored; the rest must not wait for it. */
  async #writeApart(
    calls: readonly Pending[],
    events: readonly OutgoingEvent[],
    error: unknown,
  ): Promise<boolean> {
    if (calls.length + events.length === 1) {
      if (events.length > 0) this.#deps.onFailure(error, this.waiting)
      this.#lostEvents += events.length
      for (const { refused } of calls) refused(error)
      return true
    }
    const parts = [
      ...events.map((event) => [[], [event]] as const),
      ...calls.map((call) => [[call], []] as const),
    ]
    for (const [index, [call, event]] of parts.entries())
      if (!(await this.#write(call, event))) {
        const left = parts.slice(index + 1)
        this.#calls = [...left.flatMap(([one]) => one), ...this.#calls]
        this.#events = [...left.flatMap(([, one]) => one), ...this.#events]
        return false
      }
    return true
  }

  #tryLater(calls: readonly Pending[], events: readonly OutgoingEvent[], error: unknown): false {
    this.#calls = [...calls, ...this.#calls]
    this.#events = [...events, ...this.#events]
    const delayMs = retryDelayMs(error, this.#failures)
    this.#failures += 1
    if (isNews(error, this.#failures)) this.#deps.onFailure(error, this.waiting)
    this.#writeAfter(delayMs)
    return false
  }
}
