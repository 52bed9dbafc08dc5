/**
 * Groups many small writes into one transaction: one commit per group instead of one per write. A
 * group is written when the first of its writes has waited as long as it may, or immediately when
 * full. While the database cannot be written, writes wait, up to a bound.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { Schedule } from '../clock.ts'
import type { Store } from './store.ts'
import { groupTransaction } from '../sql/query.ts'
import { isLocked, isNews, isViolation, retryDelayMs } from './storage.ts'

const noRows: ReadonlySet<number> = new Set()

export interface WriteQueueDeps<W, R> {
  readonly store: Pick<Store, 'statements' | 'storage'>
  readonly schedule: Schedule
  /** Writes that may wait; those beyond are refused. 100,000 unless given. */
  readonly maxWaiting?: number
  /**
   * Writes of a group, 100 unless given, and when more than 100 wait: on a file, the event loop
   * does nothing else until a group is committed.
   */
  readonly groupRows?: number | undefined
  /**
   * Writes a group, in a transaction. Only statements, without side effects: it runs again when its
   * group is retried, also when the answer to a COMMIT is lost and the group was stored. What it
   * reads may be changed by others before it writes, unless it locks the rows. Resolves with what
   * is called after the commit, and returns a result for each.
   */
  readonly run: (group: readonly W[]) => Promise<() => readonly R[]>
  /**
   * Present where other processes may lock the rows that writes change: such a row delays its own
   * writes only.
   */
  readonly rows?: LockableRows<W> | undefined
  /**
   * Called when a group could not be written and will be retried, though not for every attempt:
   * after the first failure, the second, the fourth and so on. Also for a write that is refused
   * without a `refused` of its own, and for what a `done` throws.
   */
  readonly onFailure: (error: unknown, waiting: number) => void
}

export interface QueuedWrite<R> {
  /** Called once, after the commit, in the order of the writes. */
  readonly done?: (result: R) => void
  /**
   * Called when this write is not stored and never will be: it violates a constraint, or too many
   * wait (`QueueFull`). Absent: `onFailure` is called.
   */
  readonly refused?: (error: unknown) => void
  /** How long the write may wait for others; 10 ms unless given. */
  readonly waitMs?: number | undefined
  /** Writes with the same key are in different groups, so the second sees the rows of the first. */
  readonly key?: string
}

/** The rows that `run` locks, with a bound on the wait. */
export interface LockableRows<W> {
  /** The row that this write changes; undefined: none. */
  readonly of: (write: W) => number | undefined
  /** Rows that another transaction has locked now. Waits for none. */
  readonly locked: (rows: readonly number[]) => Promise<ReadonlySet<number>>
  /**
   * Called when writes begin to wait for rows, with all that are locked then, and when none does
   * any more.
   */
  readonly onChange: (rows: readonly number[]) => void
}

/** A write with statements of its own. */
export interface Write extends QueuedWrite<unknown> {
  readonly run: () => Promise<unknown>
}

/** The `run` of a queue of such writes. */
export async function runEach(group: readonly Write[]): Promise<() => readonly unknown[]> {
  const results: unknown[] = []
  for (const write of group) results.push(await write.run())
  return () => results
}

/** The queue is full. */
export class QueueFull extends Error {
  override readonly name = 'QueueFull'
}

const groupWaitMs = 10
/** While rows are locked, they are looked at again. */
const lockedMs = 250
const usualGroupRows = 100

export class WriteQueue<W extends QueuedWrite<R> = Write, R = unknown> {
  readonly #deps: WriteQueueDeps<W, R>
  readonly #maxWaiting: number
  readonly #groupRows: number
  /** Groups run outside the transactions of callers. */
  readonly #outside = AsyncLocalStorage.snapshot()
  #waiting: W[] = []
  /** The group that is being written. */
  #writing: readonly W[] = []
  /** The first of them, which are committed and wait for the disk, and what is called then. */
  #committed: { readonly group: readonly W[]; readonly told: () => readonly R[] } | undefined
  /** Writes withdrawn while they are being written: they are not retried. */
  readonly #withdrawn = new Set<W>()
  /** Writes that wait for rows that another transaction has locked. */
  #apart: W[] = []
  #locked: ReadonlySet<number> = noRows
  #cancelLook: () => void = () => undefined
  #isStarted = false
  #last: Promise<boolean> = Promise.resolve(true)
  #timer: { readonly waitMs: number; readonly cancel: () => void } | undefined
  #failures = 0
  #commits = 0

  constructor(deps: WriteQueueDeps<W, R>) {
    this.#deps = deps
    this.#maxWaiting = deps.maxWaiting ?? 100_000
    this.#groupRows = deps.groupRows ?? usualGroupRows
  }

  /**
   * Queues a write for the next group. The returned function removes it, unless it is being written
   * or stored.
   */
  add(write: W): () => void {
    if (this.waiting >= this.#maxWaiting) {
      this.#refuse(write, new QueueFull(`${this.waiting} writes wait for the database`))
      return () => undefined
    }
    if (this.#isBehindLock(write)) this.#apart.push(write)
    else {
      this.#waiting.push(write)
      this.#writeWithin(write.waitMs ?? groupWaitMs)
    }
    return () => this.#withdraw(write)
  }

  /** Writes the queue now. Resolves with false when it could not be written and remains queued. */
  async flush(): Promise<boolean> {
    await this.#lookAtLocked()
    while (this.#waiting.length + this.#writing.length > 0)
      if (!(await this.#writeNext())) return false
    this.#cancelTimer()
    return this.#apart.length === 0
  }

  /** Number of queued writes. */
  get waiting(): number {
    return this.#waiting.length + this.#writing.length + this.#apart.length
  }

  /** Writes that would be lost if the process ended now, oldest first. */
  unwritten(): readonly W[] {
    return [...this.#writing, ...this.#apart, ...this.#waiting]
  }

  /** Current queue, groups written since the start, and consecutive failures. */
  stats(): { readonly waiting: number; readonly commits: number; readonly failures: number } {
    return { waiting: this.waiting, commits: this.#commits, failures: this.#failures }
  }

  /** Writes a full group immediately, others soon. While groups fail, a timer retries them. */
  #writeWithin(waitMs: number): void {
    if (this.#failures > 0 || this.#isStarted) return
    if (this.#waiting.length >= this.#groupRows) void this.#writeNext()
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
    const left = this.#takeGroup()
    const isStored = await this.#write(this.#writing)
    this.#isStarted = false
    this.#withdrawn.clear()
    if (isStored && this.#waiting.length > 0 && this.#timer === undefined)
      this.#writeAfter(this.#restWaitMs(left))
    return isStored
  }

  /** Returns how many it leaves. */
  #takeGroup(): number {
    if (this.#committed !== undefined) return this.#waiting.length
    const isBehind = this.#waiting.length > usualGroupRows
    const most = isBehind ? usualGroupRows : this.#groupRows
    const keys = new Set<string>()
    const group: W[] = []
    const rest: W[] = []
    for (const write of this.#waiting) {
      const { key } = write
      const isTaken = group.length < most && (key === undefined || !keys.has(key))
      if (isTaken && key !== undefined) keys.add(key)
      ;(isTaken ? group : rest).push(write)
    }
    this.#writing = group
    this.#waiting = rest
    return rest.length
  }

  /**
   * Writes left over by a full group have waited enough: only calls are served in between. Newer
   * writes wait as long as they may, because small groups cost as many statements as large ones.
   */
  #restWaitMs(left: number): number {
    if (left > 0 || this.#waiting.length >= this.#groupRows) return 1
    return Math.min(...this.#waiting.map(({ waitMs }) => waitMs ?? groupWaitMs))
  }

  /** `group`: what is being written, or the first of it. */
  async #write(group: readonly W[]): Promise<boolean> {
    if (group.length === 0) return true
    try {
      this.#committed ??= { group, told: await this.#run(group) }
      await this.#deps.store.statements.onDisk()
    } catch (error) {
      if (this.#committed !== undefined) return this.#tryLater(error)
      if (isLocked(error) && (await this.#setApart())) return true
      if (!isViolation(error)) return this.#tryLater(error)
      if (group.length > 1) return this.#writeOneByOne(group)
      // This write can never be stored; the others must not wait for it.
      this.#writing = this.#writing.slice(1)
      for (const write of group) this.#call(() => this.#refuse(write, error))
      return true
    }
    this.#works()
    this.#commits += 1
    const { told } = this.#committed
    this.#committed = undefined
    this.#writing = this.#writing.slice(group.length)
    for (const [index, result] of told().entries()) this.#call(() => group[index]?.done?.(result))
    return true
  }

  #run(group: readonly W[]): Promise<() => readonly R[]> {
    return this.#outside(() => groupTransaction(this.#deps.store, () => this.#deps.run(group)))
  }

  /**
   * A group has waited too long for a row: the writes of rows that are locked now wait apart, and
   * the others are written next. False: no row is locked any more, or it is not known which ones
   * are.
   */
  async #setApart(): Promise<boolean> {
    const { rows } = this.#deps
    if (rows === undefined) return false
    const writes = this.#writing.filter((write) => !this.#withdrawn.has(write))
    const asked = writes.map((write) => rows.of(write)).filter((row) => row !== undefined)
    const locked = await rows.locked([...new Set(asked)]).catch(() => noRows)
    if (locked.size === 0) return false
    this.#locked = new Set([...this.#locked, ...locked])
    rows.onChange([...this.#locked])
    this.#apart.push(...writes.filter((write) => this.#isBehindLock(write)))
    this.#waiting = [
      ...writes.filter((write) => !this.#isBehindLock(write)),
      ...this.#waiting.filter((write) => !this.#moveApart(write)),
    ]
    this.#writing = []
    this.#lookLater()
    return true
  }

  #isBehindLock(write: W): boolean {
    if (this.#locked.size === 0) return false
    const row = this.#deps.rows?.of(write)
    return row !== undefined && this.#locked.has(row)
  }

  #moveApart(write: W): boolean {
    const isApart = this.#isBehindLock(write)
    if (isApart) this.#apart.push(write)
    return isApart
  }

  #lookLater(): void {
    this.#cancelLook()
    this.#cancelLook = this.#deps.schedule(() => void this.#lookAtLocked(), lockedMs)
  }

  /** Writes of rows that are locked no more wait as the others, before them. Never rejects. */
  async #lookAtLocked(): Promise<void> {
    const { rows } = this.#deps
    this.#cancelLook()
    if (rows === undefined || this.#locked.size === 0) return
    const asked = new Set(this.#locked)
    // A row of which nothing is known is taken for locked.
    const locked = await rows.locked([...asked]).catch(() => asked)
    this.#locked = new Set([...this.#locked].filter((row) => !asked.has(row) || locked.has(row)))
    const [free, apart] = [[] as W[], [] as W[]]
    for (const write of this.#apart) (this.#isBehindLock(write) ? apart : free).push(write)
    this.#apart = apart
    this.#waiting = [...free, ...this.#waiting]
    if (this.#locked.size > 0) this.#lookLater()
    else rows.onChange([])
    if (free.length > 0) this.#writeWithin(groupWaitMs)
  }

  async #writeOneByOne(group: readonly W[]): Promise<boolean> {
    for (const write of group)
      if (this.#withdrawn.has(write)) this.#writing = this.#writing.slice(1)
      // The rest waits again: a row is locked.
      else if (this.#writing[0] !== write) return true
      else if (!(await this.#write([write]))) return false
    return true
  }

  #refuse({ refused }: W, error: unknown): void {
    if (refused === undefined) this.#deps.onFailure(error, this.waiting)
    else refused(error)
  }

  #call(work: () => void): void {
    try {
      work()
    } catch (error) {
      this.#deps.onFailure(error, this.waiting)
    }
  }

  /** Writes that were not stored wait again, before all others; those that were, for the disk. */
  #tryLater(error: unknown): boolean {
    const committed = this.#committed?.group ?? []
    const others = this.#writing.slice(committed.length)
    this.#waiting = [...others.filter((write) => !this.#withdrawn.has(write)), ...this.#waiting]
    this.#writing = committed
    const delayMs = retryDelayMs(error, this.#failures)
    this.#failures += 1
    this.#deps.store.storage.failing(this, error)
    if (isNews(error, this.#failures)) this.#deps.onFailure(error, this.waiting)
    const isOver = this.#waiting.length + committed.length === 0
    if (isOver) this.#works()
    else this.#writeAfter(delayMs)
    return isOver
  }

  #works(): void {
    if (this.#failures > 0) this.#deps.store.storage.working(this)
    this.#failures = 0
  }

  #withdraw(write: W): void {
    const index = this.#waiting.indexOf(write)
    if (index >= 0) this.#waiting.splice(index, 1)
    else if (this.#apart.includes(write)) this.#apart.splice(this.#apart.indexOf(write), 1)
    else if (this.#writing.includes(write)) this.#withdrawn.add(write)
    // Nothing after this can fail.
    if (this.waiting === 0) this.#works()
  }
}
