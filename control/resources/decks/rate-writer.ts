/** Writes and removes many rates of one plan by few statements, in the open transaction. */
import { type Tables, execute } from '../../../schema/sql/query.ts'
import { type NewRate, rateBatches } from '../bulk-rates.ts'
import type { KeptTerms } from './deck-changes.ts'
import type { RateKey } from './deck-reader.ts'

/** Rows of one statement. */
const BATCH = 100
const REMOVED = 500

export class RateWriter {
  readonly #store: Tables
  readonly #planId: number
  readonly #put: (rates: readonly NewRate[]) => Promise<number>
  #rates: NewRate[] = []
  #ids: number[] = []

  constructor(store: Tables, planId: number) {
    this.#store = store
    this.#planId = planId
    this.#put = rateBatches(store)
  }

  async put({ prefix, period, effective_from_at }: RateKey, terms: KeptTerms): Promise<void> {
    this.#rates.push({ ...terms, rate_plan_id: this.#planId, prefix, period, effective_from_at })
    if (this.#rates.length >= BATCH) await this.#flushRates()
  }

  async remove(id: number): Promise<void> {
    this.#ids.push(id)
    if (this.#ids.length >= REMOVED) await this.#flushIds()
  }

  async flush(): Promise<void> {
    await this.#flushRates()
    await this.#flushIds()
  }

  async #flushRates(): Promise<void> {
    if (this.#rates.length === 0) return
    await this.#put(this.#rates)
    this.#rates = []
  }

  async #flushIds(): Promise<void> {
    if (this.#ids.length === 0) return
    await execute(this.#store, this.#store.db.deleteFrom('rate').where('id', 'in', this.#ids))
    this.#ids = []
  }
}
