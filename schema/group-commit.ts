/**
 * Many small writes in one synchronous transaction: one fsync for a group instead of one for each.
 * A group is written 10 ms after its first write, or at once when it is full.
 */
import type Sqlite from 'better-sqlite3'

export interface GroupCommitDeps {
  readonly sqlite: Sqlite.Database
  readonly schedule: (work: () => void, delayMs: number) => () => void
  /** A group could not be written and is tried again; nothing of it is lost meanwhile. */
  readonly onFailure: (error: unknown, waiting: number) => void
}

interface Write<T> {
  /** Only statements, no memory: it runs again when its group has to be repeated. */
  readonly run: () => T
  /** Called once, after the commit, in the order of the writes. */
  readonly done?: (result: T) => void
  /** This write alone can never be stored: a constraint refuses it. Absent: `onFailure` hears of it. */
  readonly refused?: (error: unknown) => void
}

interface Pending {
  run(): void
  done(): void
  refused(error: unknown): void
}

const groupWaitMs = 10
const groupRows = 100
const retryDelaysMs = [50, 100, 250, 500, 1_000] as const

export class GroupCommit {
  readonly #deps: GroupCommitDeps
  readonly #writeGroup: (group: readonly Pending[]) => void
  readonly #pending: Pending[] = []
  #cancelTimer: (() => void) | undefined
  #failures = 0
  #commits = 0

  constructor(deps: GroupCommitDeps) {
    this.#deps = deps
    const runAll = deps.sqlite.transaction((group: readonly Pending[]) => {
      for (const write of group) write.run()
    })
    this.#writeGroup = (group) => runAll.immediate(group)
  }

  /** Queues a write for the next group. */
  add<T>(write: Write<T>): void {
    let result: { readonly value: T } | undefined
    this.#pending.push({
      run: () => {
        result = { value: write.run() }
      },
      done: () => {
        if (result !== undefined) write.done?.(result.value)
      },
      refused: write.refused ?? ((error) => this.#deps.onFailure(error, this.#pending.length)),
    })
    if (this.#failures > 0) return
    if (this.#pending.length >= groupRows) this.flush()
    else this.#cancelTimer ??= this.#deps.schedule(() => this.flush(), groupWaitMs)
  }

  /**
   * Queues a write and resolves once it is durable. One that can never be stored is told to
   * `onFailure` and resolves too: nobody gains by waiting for it.
   */
  written(run: () => void): Promise<void> {
    return new Promise((resolve) => {
      const refused = (error: unknown): void => {
        this.#deps.onFailure(error, this.#pending.length)
        resolve()
      }
      this.add({ run, done: () => resolve(), refused })
    })
  }

  /** Writes what is queued now. False: it could not be written and stays queued. */
  flush(): boolean {
    this.#cancelTimer?.()
    this.#cancelTimer = undefined
    while (this.#pending.length > 0) {
      const group = this.#pending.slice(0, groupRows)
      if (!this.#commit(group)) return false
    }
    return true
  }

  #commit(group: readonly Pending[]): boolean {
    try {
      this.#writeGroup(group)
    } catch (error) {
      if (!isConstraint(error)) return this.#tryLater(error)
      return group.length === 1 ? this.#giveUp(error) : this.#commitOneByOne(group)
    }
    this.#failures = 0
    this.#commits += 1
    this.#pending.splice(0, group.length)
    for (const write of group) write.done()
    return true
  }

  /** One write of the group is refused for ever; the others must not wait for it. */
  #commitOneByOne(group: readonly Pending[]): boolean {
    return group.every((write) => this.#commit([write]))
  }

  #giveUp(error: unknown): true {
    this.#pending.shift()?.refused(error)
    return true
  }

  #tryLater(error: unknown): false {
    const delayMs = retryDelaysMs[Math.min(this.#failures, retryDelaysMs.length - 1)] ?? groupWaitMs
    this.#failures += 1
    this.#cancelTimer = this.#deps.schedule(() => this.flush(), delayMs)
    this.#deps.onFailure(error, this.#pending.length)
    return false
  }

  /** Writes in the queue. */
  get waiting(): number {
    return this.#pending.length
  }

  /** Present queue, groups written since the start, and failures since the last success. */
  stats(): { readonly waiting: number; readonly commits: number; readonly failures: number } {
    return { waiting: this.#pending.length, commits: this.#commits, failures: this.#failures }
  }
}

const isConstraint = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && String(error.code).startsWith('SQLITE_CONSTRAINT')
