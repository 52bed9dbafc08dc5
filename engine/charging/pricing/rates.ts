/** The rate table in force, and how it follows the database: at once, by one prefix, or gently. */
import type { Store } from '../../../schema/open.ts'
import { loadPrefix, loadRates, rateSlices } from './load-rates.ts'
import { RateTable } from './rate-table.ts'

export class Rates {
  readonly #store: Store
  #table: RateTable
  /** Whole tables taken over so far: one that was begun before another is not put in its place. */
  #loads = 0
  #lastGentle: Promise<void> = Promise.resolve()
  /** Prefixes that were written while a table is being loaded gently; undefined: none is. */
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

  /** The same for one prefix of a plan, at no cost for the others. */
  reloadPrefix(planId: number, prefix: string): void {
    this.#table.replace(planId, prefix, loadPrefix(this.#store, planId, prefix))
    this.#writtenMeanwhile?.push([planId, prefix])
  }

  /** The same as `reload`, a slice at a time; `pause` lets calls have their turn. Resolves when they hold. */
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
    // What was loaded whole since then is newer than what was read here.
    if (this.#loads !== loads) return
    for (const [planId, prefix] of written)
      table.replace(planId, prefix, loadPrefix(this.#store, planId, prefix))
    this.#table = table
  }
}
