/** The rate table in force. Follows the database at once, by one prefix, or in slices. */
import type { Store } from '../../../schema/open.ts'
import { loadPrefix, loadRates, rateSlices } from './load-rates.ts'
import { RateTable } from './rate-table.ts'

export class Rates {
  readonly #store: Store
  #table: RateTable
  /** Whole tables loaded so far: a table in slices does not replace one that was loaded later. */
  #loads = 0
  #lastGentle: Promise<void> = Promise.resolve()
  /** Prefixes that were written while a table loads in slices; undefined: none loads. */
  #writtenMeanwhile: [planId: number, prefix: string][] | undefined

  constructor(store: Store) {
    this.#store = store
    this.#table = loadRates(store)
  }

  get table(): RateTable {
    return this.#table
  }

  /** Takes over the rates as they are stored now. 100,000 of them take about half a second. */
  reload(): void {
    this.#table = loadRates(this.#store)
    this.#loads += 1
  }

  /** Takes over the rates of one prefix of a plan. */
  reloadPrefix(planId: number, prefix: string): void {
    this.#table.replace(planId, prefix, loadPrefix(this.#store, planId, prefix))
    this.#writtenMeanwhile?.push([planId, prefix])
  }

  /** As `reload`, in slices; `pause` runs between them. Resolves when the rates apply. */
  reloadGently(pause: () => Promise<void>): Promise<void> {
    const work = this.#lastGentle.then(() => this.#loadGently(pause))
    this.#lastGentle = work.catch(() => undefined)
    return work
  }

  async #loadGently(pause: () => Promise<void>): Promise<void> {
    const loads = this.#loads
    const written: [number, string][] = []
    this.#writtenMeanwhile = written
    const table = new RateTable()
    for (const slice of rateSlices(this.#store)) {
      table.add(slice)
      await pause()
    }
    this.#writtenMeanwhile = undefined
    // A table that was loaded whole meanwhile is newer.
    if (this.#loads !== loads) return
    for (const [planId, prefix] of written)
      table.replace(planId, prefix, loadPrefix(this.#store, planId, prefix))
    this.#table = table
  }
}
