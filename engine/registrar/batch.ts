/**
 * Work that is done together: what came in within `waitMs` of the first, in order, or at once when
 * it is much. A program that wakes for each piece pays more for waking than for the work.
 */
import type { Schedule } from '../../schema/clock.ts'

export interface BatchDeps<Item> {
  readonly schedule: Schedule
  readonly waitMs: number
  readonly maxItems: number
  readonly work: (items: readonly Item[]) => void
}

export class Batch<Item> {
  readonly #deps: BatchDeps<Item>
  #items: Item[] = []
  #cancel: (() => void) | undefined

  constructor(deps: BatchDeps<Item>) {
    this.#deps = deps
  }

  add(item: Item): void {
    const { schedule, waitMs, maxItems } = this.#deps
    this.#items.push(item)
    if (this.#items.length >= maxItems) this.flush()
    else this.#cancel ??= schedule(() => this.flush(), waitMs)
  }

  /** Does what waits. */
  flush(): void {
    this.#cancel?.()
    this.#cancel = undefined
    const items = this.#items
    this.#items = []
    if (items.length > 0) this.#deps.work(items)
  }
}
