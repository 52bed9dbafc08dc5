/** Writes and removes many rates of one plan by few statements, in the open transaction. */
import { type Tables, execute } from '../../../schema/sql/query.ts'
import { type NewRate, rateBatches } from '../bulk-rates.ts'
import type { KeptTerms } from './deck-changes.ts'
import type { RateKey } from './deck-rate.ts'

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

  /** True: `flush` has to follow. */
  put({ prefix, period, effective_from_at }: RateKey, terms: KeptTerms): boolean {
    this.#rates.push({
      rate_plan_id: this.#planId,
      prefix,
      period,
      effective_from_at,
      description: terms.description,
      rate_per_minute_micros: terms.rate_per_minute_micros,
      connect_fee_micros: terms.connect_fee_micros,
      is_blocked: terms.is_blocked,
      first_increment_seconds: terms.first_increment_seconds,
      first_rate_per_minute_micros: terms.first_rate_per_minute_micros,
      increment_seconds: terms.increment_seconds,
      effective_to_at: terms.effective_to_at,
    })
    return this.#rates.length >= BATCH
  }

  /** True: `flush` has to follow. */
  remove(id: number): boolean {
    this.#ids.push(id)
    return this.#ids.length >= REMOVED
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
