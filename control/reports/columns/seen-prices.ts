/** The prices of the records of a block, as a reader may see them; NaN: no price. */
import { all, inSlices } from '../../../schema/sql/query.ts'
import type { CallSources } from '../call-filters.ts'
import type { BlockHead, BlockNumbers } from './record-block.ts'
import type { SeenPrice } from './record-tests.ts'

/** A reader, and the customers whose prices it does not see, as far as blocks have shown them. */
export class PriceReader {
  /** Null: sees all. */
  readonly tenantId: number | null
  readonly others = new Set<number>()
  readonly #asked = new Set<number>()
  readonly #store: CallSources['store']

  constructor({ store }: Pick<CallSources, 'store'>, tenantId: number | null) {
    this.#store = store
    this.tenantId = tenantId
  }

  /** Calls of a customer that another system has are priced there. */
  async learn(customers: Float64Array): Promise<void> {
    const unknown = new Set<number>()
    for (const id of customers) if (!Number.isNaN(id) && !this.#asked.has(id)) unknown.add(id)
    for await (const ids of inSlices([...unknown])) {
      const query = this.#store.db
        .selectFrom('customer')
        .select(['id', 'tenant_id'])
        .where('id', 'in', [...ids])
      for (const { id, tenant_id: owner } of await all(this.#store, query))
        if (owner !== this.tenantId) this.others.add(id)
      for (const id of ids) this.#asked.add(id)
    }
  }
}

export class SeenPrices {
  readonly #reader: PriceReader
  readonly #numbers: BlockNumbers
  readonly #known = new Set<string>()
  readonly #arrays = new Map<string, Float64Array>()
  #head: BlockHead | undefined
  #rows: Int32Array | undefined

  constructor(reader: PriceReader, numbers: BlockNumbers) {
    this.#reader = reader
    this.#numbers = numbers
  }

  /** `numbers` shows the block, or these rows of it. */
  show(head: BlockHead, rows?: Int32Array): void {
    this.#head = head
    this.#rows = rows
    this.#known.clear()
  }

  of(name: SeenPrice | 'carrier_cost'): Float64Array {
    const { count = 0 } = this.#head ?? {}
    let array = this.#arrays.get(name)
    if (array === undefined || array.length < count) {
      array = new Float64Array(count)
      this.#arrays.set(name, array)
      this.#known.delete(name)
    }
    if (this.#known.has(name)) return array
    this.#known.add(name)
    if (name === 'cost') this.#fillCosts(array, count)
    else if (name === 'carrier_cost') this.#fillCarrierCosts(array, count)
    else this.#fillMargins(array, count)
    return array
  }

  #fillCosts(array: Float64Array, count: number): void {
    const costs = this.#numbers.of('cost_micros')
    const { tenantId, others } = this.#reader
    if (tenantId === null || others.size === 0) {
      array.set(costs.subarray(0, count))
      return
    }
    const customers = this.#numbers.of('customer_id')
    for (let row = 0; row < count; row += 1)
      array[row] = others.has(customers[row] ?? NaN) ? NaN : (costs[row] ?? NaN)
  }

  #fillCarrierCosts(array: Float64Array, count: number): void {
    const costs = this.#numbers.of('carrier_cost_micros')
    const { tenantId } = this.#reader
    if (tenantId === null) {
      array.set(costs.subarray(0, count))
      return
    }
    const owners = this.#numbers.of('carrier_tenant_id')
    for (let row = 0; row < count; row += 1)
      array[row] = owners[row] === tenantId ? (costs[row] ?? NaN) : NaN
  }

  /** As `marginMicros` says. */
  #fillMargins(array: Float64Array, count: number): void {
    const rows = this.#rows
    const [sold, bought] = [this.of('cost'), this.of('carrier_cost')]
    const { currency = [], carrier_currency: boughtIn = [] } = this.#head?.words ?? {}
    const same = currency.map((word) => boughtIn.indexOf(word))
    const [currencies, others] = [
      this.#numbers.of('currency'),
      this.#numbers.of('carrier_currency'),
    ]
    for (let at = 0; at < (rows?.length ?? count); at += 1) {
      const row = rows === undefined ? at : (rows[at] ?? 0)
      const other = same[currencies[row] ?? NaN]
      const isSame = other !== undefined && other === others[row]
      array[row] = isSame ? (sold[row] ?? NaN) - (bought[row] ?? NaN) : NaN
    }
  }
}
