/** The rate table in force. Follows the database whole, in slices, or by one prefix. */
import type { Rate } from '../../../schema/contracts/ocs.ts'
import type { Store } from '../../../schema/open.ts'
import type { ExitCodes } from '../../../schema/rules/exit-codes.ts'
import { OneAtATime } from '../../../schema/one-at-a-time.ts'
import { grantLength } from './grant.ts'
import { loadPrefix, rateSlices } from './load-rates.ts'
import { RateTable } from './rate-table.ts'

type WrittenPrefix = readonly [planId: number, prefix: string, rates: readonly Rate[]]

export class Rates {
  readonly #store: Store
  readonly #pause: () => Promise<unknown>
  readonly #whole = new OneAtATime(() => this.#load())
  /** A prefix does not wait for a whole load, only for other prefixes. */
  readonly #prefixes = new OneAtATime(() => Promise.resolve())
  readonly #exitCodes: ExitCodes | undefined
  #table: RateTable
  #longestGrantSeconds = 0
  /** Prefixes that were taken over while a table loads; undefined: none loads. */
  #writtenMeanwhile: WrittenPrefix[] | undefined

  /** @param pause runs between two slices. */
  constructor(store: Store, pause: () => Promise<unknown>, exitCodes?: ExitCodes) {
    this.#store = store
    this.#pause = pause
    this.#exitCodes = exitCodes
    this.#table = new RateTable([], exitCodes)
  }

  get table(): RateTable {
    return this.#table
  }

  /** Of a call at any rate that was ever in this table: calls go on at the rate of their start. */
  get longestGrantSeconds(): number {
    return this.#longestGrantSeconds
  }

  #note(rates: readonly Rate[]): void {
    for (const { tariff } of rates)
      this.#longestGrantSeconds = Math.max(this.#longestGrantSeconds, grantLength(tariff))
  }

  /** Takes over the rates as they are stored now: there are none before. 100,000 of them take about half a second. */
  reload(): Promise<void> {
    return this.#whole.request()
  }

  /** Takes over the rates of one prefix of a plan. */
  reloadPrefix(planId: number, prefix: string): Promise<void> {
    return this.#prefixes.between(async () => {
      const rates = await loadPrefix(this.#store, planId, prefix)
      this.#note(rates)
      this.#table.replace(planId, prefix, rates)
      this.#writtenMeanwhile?.push([planId, prefix, rates])
    })
  }

  async #load(): Promise<void> {
    const written: WrittenPrefix[] = []
    this.#writtenMeanwhile = written
    try {
      const table = new RateTable([], this.#exitCodes)
      for await (const slice of rateSlices(this.#store)) {
        table.add(slice)
        this.#note(slice)
        await this.#pause()
      }
      for (const [planId, prefix, rates] of written) table.replace(planId, prefix, rates)
      this.#table = table
    } finally {
      this.#writtenMeanwhile = undefined
    }
  }
}
