/**
 * Groups many small writes into one transaction of any database: one commit per group instead of one per write.
 * A group is written when the first of its writes has waited as long as it may, or immediately when full. While
 * the database cannot be written, writes wait, up to a bound.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { Schedule } from '../clock.ts'
import type { Store } from '../open.ts'
import { lockedTransaction } from '../sql/query.ts'
import { isNews, isViolation, retryDelayMs } from './storage.ts'

export interface WriteQueueDeps {
  readonly store: Pick<Store, 'statements' | 'storage'>
  readonly schedule: Schedule
  /** Writes that may wait; those beyond are refused. 100,000 unless given. */
  readonly maxWaiting?: number
  /**
   * Called when a group could not be written and will be retried, though not for every attempt: after the first
   * failure, the second, the fourth and so on. Also for a write that is refused without a `refused` of its own,
   * and for what a `done` throws.
   */
  readonly onFailure: (error: unknown, waiting: number) => void
}

export interface Write<T> {
  /**
   * Only statements, without side effects: it runs again when its group is retried, also when the answer to a
   * COMMIT is lost and the group was stored. What it reads may be changed by others before it writes, unless
   * it locks the rows.
   */
  readonly run: () => Promise<T>
  /** Called once, after the commit, in the order of the writes. */
  readonly done?: (result: T) => void
  /**
   * Called when this write is not stored and never will be: it violates a constraint, or too many wait
   * (`QueueFull`). Absent: `onFailure` is called.
   */
  readonly refused?: (error: unknown) => void
  /** How long the write may wait for others; 10 ms unless given. */
  readonly waitMs?: number
  /** What is lost if the process ends before the write is stored; absent when unimportant. */
  readonly content?: unknown
}

/** As many writes wait as may. */
export class QueueFull extends Error {
  override readonly name = 'QueueFull'
}

interface Pending {
  readonly content: unknown
  isWithdrawn: boolean
  /** Resolves with what is to be called after the commit. */
  readonly run: () => Promise<() => void>
  readonly refused: (error: unknown) => void
}

const groupWaitMs = 10
const groupRows = 100

export class WriteQueue {
  readonly #deps: WriteQueueDeps
  readonly #maxWaiting: number
  /** Its groups belong to no transaction of a caller. */
  readonly #outside = AsyncLocalStorage.snapshot()
  #waiting: Pending[] = []
  /** The group that is being written. */
  #writing: readonly Pending[] = []
  #isStarted = false
  #last: Promise<boolean> = Promise.resolve(true)
  #timer: { readonly waitMs: number; readonly cancel: () => void } | undefined
  #failures = 0
  #commits = 0

  constructor(deps: WriteQueueDeps) {
    this.#deps = deps
    this.#maxWaiting = deps.maxWaiting ?? 100_000
  }

  /** Queues a write for the next group. The returned function removes it, unless it is being written or stored. */
  add<T>(write: Write<T>): () => void {
    const pending: Pending = {
      content: write.content,
      isWithdrawn: false,
      run: async () => {
        const result = await write.run()
        return () => write.done?.(result)
      },
      refused: write.refused ?? ((error) => this.#deps.onFailure(error, this.waiting)),
    }
    if (this.waiting >= this.#maxWaiting) {
      pending.refused(new QueueFull(`${this.waiting} writes wait for the database`))
      return () => undefined
    }
    this.#waiting.push(pending)
    this.#writeWithin(write.waitMs ?? groupWaitMs)
    return () => this.#withdraw(pending)
  }

  /**
   * Queues a write. Resolves with true once it is durable, or with false when it was not stored within
   * `withinMs` or never can be. Then nothing of it is stored, unless a database server fell silent during it.
   */
  written(run: () => Promise<unknown>, withinMs: number): Promise<boolean> {
    return new Promise((resolve) => {
      let withdraw = (): void => undefined
      const cancel = this.#deps.schedule(() => {
        withdraw()
        resolve(false)
      }, withinMs)
      const finish = (isStored: boolean): void => {
        cancel()
        resolve(isStored)
      }
      withdraw = this.add({
        run,
        done: () => finish(true),
        refused: (error) => {
          this.#deps.onFailure(error, this.waiting)
          finish(false)
        },
      })
    })
  }

  /** Writes the queue now. Resolves with false when it could not be written and remains queued. */
  async flush(): Promise<boolean> {
    while (this.waiting > 0) if (!(await this.#writeNext())) return false
    this.#cancelTimer()
    return true
  }

  /** Number of queued writes. */
  get waiting(): number {
    return this.#waiting.length + this.#writing.length
  }

  /** What would be lost if the process ended now, oldest first. */
  unwritten(): readonly unknown[] {
    const contents = [...this.#writing, ...this.#waiting].map(({ content }) => content)
    return contents.filter((content) => content !== undefined)
  }

  /** Current queue, groups written since the start, and consecutive failures. */
  stats(): { readonly waiting: number; readonly commits: number; readonly failures: number } {
    return { waiting: this.waiting, commits: this.#commits, failures: this.#failures }
  }

  /** Writes a full group immediately, others soon. While groups fail, a timer retries them. */
  #writeWithin(waitMs: number): void {
    if (this.#failures > 0 || this.#isStarted) return
    if (this.#waiting.length >= groupRows) void this.#writeNext()
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

  /** One group at a time. Never rejects. */
  #writeNext(): Promise<boolean> {
    this.#cancelTimer()
    this.#isStarted = true
    this.#last = this.#last.then(() => this.#writeGroup())
    return this.#last
  }

  async #writeGroup(): Promise<boolean> {
    this.#writing = this.#waiting.splice(0, groupRows)
    const isStored = await this.#write(this.#writing)
    this.#isStarted = false
    // Calls are served in between.
    if (isStored && this.#waiting.length > 0 && this.#timer === undefined) this.#writeAfter(1)
    return isStored
  }

  /** `group`: what is being written, or the first of it. */
  async #write(group: readonly Pending[]): Promise<boolean> {
    if (group.length === 0) return true
    let done: readonly (() => void)[] = []
    try {
      done = await this.#outside(() => this.#transaction(group))
    } catch (error) {
      if (!isViolation(error)) return this.#tryLater(error)
      if (group.length > 1) return this.#writeOneByOne(group)
      // It can never be stored; the others must not wait for it.
      this.#writing = this.#writing.slice(1)
      group.forEach(({ refused }) => this.#tell(() => refused(error)))
      return true
    }
    this.#works()
    this.#commits += 1
    this.#writing = this.#writing.slice(group.length)
    for (const each of done) this.#tell(each)
    return true
  }

  #transaction(group: readonly Pending[]): Promise<readonly (() => void)[]> {
    return lockedTransaction(this.#deps.store, async () => {
      const done: (() => void)[] = []
      for (const write of group) if (!write.isWithdrawn) done.push(await write.run())
      return done
    })
  }

  async #writeOneByOne(group: readonly Pending[]): Promise<boolean> {
    for (const write of group) if (!(await this.#write([write]))) return false
    return true
  }

  #tell(work: () => void): void {
    try {
      work()
    } catch (error) {
      this.#deps.onFailure(error, this.waiting)
    }
  }

  /** What was not stored waits again, before all others. */
  #tryLater(error: unknown): boolean {
    this.#waiting = [...this.#writing.filter((write) => !write.isWithdrawn), ...this.#waiting]
    this.#writing = []
    const delayMs = retryDelayMs(error, this.#failures)
    this.#failures += 1
    this.#deps.store.storage.failing(this, error)
    if (isNews(error, this.#failures)) this.#deps.onFailure(error, this.waiting)
    if (this.#waiting.length > 0) this.#writeAfter(delayMs)
    else this.#works()
    return this.#waiting.length === 0
  }

  #works(): void {
    if (this.#failures > 0) this.#deps.store.storage.working(this)
    this.#failures = 0
  }

  #withdraw(write: Pending): void {
    write.isWithdrawn = true
    const index = this.#waiting.indexOf(write)
    if (index >= 0) this.#waiting.splice(index, 1)
    // Nothing after this can fail.
    if (this.waiting === 0) this.#works()
  }
}
