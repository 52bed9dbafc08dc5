/**
 * Writes of deliveries, several in one transaction: one fsync per group instead of one per write. Nothing is lost while
 * the database cannot be written.
 */
import type { Schedule } from '../../schema/clock.ts'
import type { Store } from '../../schema/open.ts'
import { transaction } from '../../schema/sql/query.ts'
import { isNews, retryDelayMs } from '../../schema/storage/retries.ts'
import { isViolation } from '../../schema/storage/storage.ts'

export interface WriteQueueDeps {
  readonly store: Store
  readonly schedule: Schedule
  /** Called for the first failure in a row, the second, the fourth and so on; and for a write that can never be stored. */
  readonly onFailure: (error: unknown, waiting: number) => void
}

interface Write {
  /** Only statements, without side effects: it runs again when its group is retried. */
  readonly run: () => Promise<void>
  /** Called once, after the commit, in the order of the writes. */
  readonly done?: () => void
}

const waitMs = 10
const groupSize = 100

export class WriteQueue {
  readonly #deps: WriteQueueDeps
  readonly #waiting: Write[] = []
  #cancelTimer: (() => void) | undefined
  #failures = 0
  #last: Promise<boolean> = Promise.resolve(true)

  constructor(deps: WriteQueueDeps) {
    this.#deps = deps
  }

  get waiting(): number {
    return this.#waiting.length
  }

  /** Queues a write for the next group. While groups fail, a timer retries them. */
  add(write: Write): void {
    this.#waiting.push(write)
    if (this.#failures === 0 && this.#cancelTimer === undefined) this.#writeAfter(waitMs)
  }

  /** Writes the queue now. Resolves with false when it could not be written and remains queued. */
  async flush(): Promise<boolean> {
    while (this.#waiting.length > 0) if (!(await this.#writeNext())) return false
    this.#cancelTimer?.()
    this.#cancelTimer = undefined
    return true
  }

  #writeAfter(delayMs: number): void {
    this.#cancelTimer?.()
    this.#cancelTimer = this.#deps.schedule(() => {
      this.#cancelTimer = undefined
      void this.#writeDue()
    }, delayMs)
  }

  async #writeDue(): Promise<void> {
    const isStored = await this.#writeNext()
    if (isStored && this.#waiting.length > 0) this.#writeAfter(1)
  }

  /** One group at a time. Never rejects. */
  #writeNext(): Promise<boolean> {
    this.#last = this.#last.then(() => this.#write(this.#waiting.slice(0, groupSize)))
    return this.#last
  }

  /** `group` is the head of the queue. */
  async #write(group: readonly Write[]): Promise<boolean> {
    if (group.length === 0) return true
    try {
      await transaction(this.#deps.store, async () => {
        for (const { run } of group) await run()
      })
    } catch (error) {
      if (!isViolation(error)) return this.#tryLater(error)
      if (group.length > 1) return this.#writeOneByOne(group)
      // It can never be stored; the others must not wait for it.
      this.#waiting.shift()
      this.#deps.onFailure(error, this.#waiting.length)
      return true
    }
    if (this.#failures > 0) this.#deps.store.storage.working(this)
    this.#failures = 0
    this.#waiting.splice(0, group.length)
    for (const { done } of group) done?.()
    return true
  }

  async #writeOneByOne(group: readonly Write[]): Promise<boolean> {
    for (const write of group) if (!(await this.#write([write]))) return false
    return true
  }

  #tryLater(error: unknown): false {
    const delayMs = retryDelayMs(error, this.#failures)
    this.#failures += 1
    this.#deps.store.storage.failing(this, error)
    if (isNews(error, this.#failures)) this.#deps.onFailure(error, this.#waiting.length)
    this.#writeAfter(delayMs)
    return false
  }
}
