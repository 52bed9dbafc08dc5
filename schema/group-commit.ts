/**
 * Groups many small writes into one synchronous transaction: one fsync per group instead of one per write.
 * A group is committed when the first of its writes has waited as long as it may, or immediately when full.
 */
import type { Schedule } from './clock.ts'
import type { LocalStore } from './open.ts'
import { isNews, isViolation, retryDelayMs } from './storage/storage.ts'

export interface GroupCommitDeps {
  readonly store: Pick<LocalStore, 'sqlite' | 'storage'>
  readonly schedule: Schedule
  /**
   * Called when a group could not be written and will be retried; nothing is lost meanwhile. Not called for
   * every attempt: after the first failure, the second, the fourth and so on.
   */
  readonly onFailure: (error: unknown, waiting: number) => void
}

interface Write<T> {
  /** Only statements, without side effects: it runs again when its group is retried. */
  readonly run: () => T
  /** Called once, after the commit, in the order of the writes. */
  readonly done?: (result: T) => void
  /**
   * Called when this write can never be stored, because it violates a constraint. Absent: `onFailure` is
   * called.
   */
  readonly refused?: (error: unknown) => void
  /** How long the write may wait for others; 10 ms unless given. */
  readonly waitMs?: number
  /** What is lost if the process ends before the write is stored; absent when unimportant. */
  readonly content?: unknown
}

interface Pending {
  readonly content: unknown
  run(): void
  done(): void
  refused(error: unknown): void
}

const groupWaitMs = 10
const groupRows = 100

export class GroupCommit {
  readonly #deps: GroupCommitDeps
  readonly #writeGroup: (group: readonly Pending[]) => void
  readonly #pending: Pending[] = []
  #timer: { readonly waitMs: number; readonly cancel: () => void } | undefined
  #failures = 0
  #commits = 0

  constructor(deps: GroupCommitDeps) {
    this.#deps = deps
    const runAll = deps.store.sqlite.transaction((group: readonly Pending[]) => {
      for (const write of group) write.run()
    })
    this.#writeGroup = (group) => runAll.immediate(group)
  }

  /** Queues a write for the next group. The returned function removes it, unless it is already stored. */
  add<T>(write: Write<T>): () => void {
    let result: { readonly value: T } | undefined
    const pending: Pending = {
      content: write.content,
      run: () => {
        result = { value: write.run() }
      },
      done: () => {
        if (result !== undefined) write.done?.(result.value)
      },
      refused: write.refused ?? ((error) => this.#deps.onFailure(error, this.#pending.length)),
    }
    this.#pending.push(pending)
    this.#writeWithin(write.waitMs ?? groupWaitMs)
    return () => this.#withdraw(pending)
  }

  /**
   * Queues a write. Resolves with true once it is durable, or with false when it was not stored within
   * `withinMs` or never can be; then nothing of it is stored.
   */
  written(run: () => void, withinMs: number): Promise<boolean> {
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
      // A full group is written before this returns.
      withdraw = this.add({
        run,
        done: () => finish(true),
        refused: (error) => {
          this.#deps.onFailure(error, this.#pending.length)
          finish(false)
        },
      })
    })
  }

  /** Writes the queue now. False when it could not be written and remains queued. */
  flush(): boolean {
    this.#cancelTimer()
    while (this.#pending.length > 0) if (!this.#commitNext()) return false
    return true
  }

  /**
   * Writes a full group immediately, others soon. While groups fail or wait for the lock, a timer retries
   * them.
   */
  #writeWithin(waitMs: number): void {
    if (this.#failures > 0) return
    if (this.#pending.length === groupRows) this.#writeNext()
    else if (this.#timer === undefined || this.#timer.waitMs > waitMs) this.#writeAfter(waitMs)
  }

  #writeAfter(waitMs: number): void {
    this.#cancelTimer()
    this.#timer = { waitMs, cancel: this.#deps.schedule(() => this.#writeNext(), waitMs) }
  }

  #cancelTimer(): void {
    this.#timer?.cancel()
    this.#timer = undefined
  }

  /**
   * Writes one group. After a full disk, groups are written one at a time, so that calls are served in
   * between.
   */
  #writeNext(): void {
    this.#cancelTimer()
    if (this.#pending.length === 0 || !this.#commitNext() || this.#pending.length === 0) return
    this.#writeAfter(1)
  }

  #commitNext(): boolean {
    return this.#commit(this.#pending.slice(0, groupRows))
  }

  #commit(group: readonly Pending[]): boolean {
    // A transaction of the API, which ends within this turn: inside it, this group would not be durable.
    if (this.#deps.store.sqlite.inTransaction) {
      this.#writeAfter(0)
      return false
    }
    try {
      this.#writeGroup(group)
    } catch (error) {
      if (!isViolation(error)) return this.#tryLater(error)
      return group.length === 1 ? this.#giveUp(error) : this.#commitOneByOne(group)
    }
    if (this.#failures > 0) this.#deps.store.storage.working(this)
    this.#failures = 0
    this.#commits += 1
    this.#pending.splice(0, group.length)
    for (const write of group) write.done()
    return true
  }

  /** One write of the group can never be stored; the others must not wait for it. */
  #commitOneByOne(group: readonly Pending[]): boolean {
    return group.every((write) => this.#commit([write]))
  }

  #giveUp(error: unknown): true {
    this.#pending.shift()?.refused(error)
    return true
  }

  #tryLater(error: unknown): false {
    const delayMs = retryDelayMs(error, this.#failures)
    this.#failures += 1
    this.#writeAfter(delayMs)
    this.#deps.store.storage.failing(this, error)
    if (isNews(error, this.#failures)) this.#deps.onFailure(error, this.#pending.length)
    return false
  }

  #withdraw(write: Pending): void {
    const index = this.#pending.indexOf(write)
    if (index >= 0) this.#pending.splice(index, 1)
    // Nothing after this can fail.
    if (this.#pending.length > 0 || this.#failures === 0) return
    this.#failures = 0
    this.#deps.store.storage.working(this)
  }

  /** Number of queued writes. */
  get waiting(): number {
    return this.#pending.length
  }

  /** What would be lost if the process ended now, oldest first. */
  unwritten(): readonly unknown[] {
    return this.#pending.flatMap(({ content }) => (content === undefined ? [] : [content]))
  }

  /** Current queue, groups written since the start, and consecutive failures. */
  stats(): { readonly waiting: number; readonly commits: number; readonly failures: number } {
    return { waiting: this.#pending.length, commits: this.#commits, failures: this.#failures }
  }
}
