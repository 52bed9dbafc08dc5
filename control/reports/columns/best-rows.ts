/** The first records of an order, out of many in any order: as many as are wanted, not all. */

export interface RowPosition {
  /** Null: the record has no value, and comes last. */
  readonly key: number | null
  readonly start: number
  readonly id: number
}

export type RowOrder = (one: RowPosition, other: RowPosition) => number

/** Equal keys are in the order of their starts, in the same direction. */
export function rowOrder(isDescending: boolean): RowOrder {
  const sign = isDescending ? -1 : 1
  return (one, other) => {
    if (one.key === null || other.key === null) {
      if (one.key !== other.key) return one.key === null ? 1 : -1
    } else if (one.key !== other.key) return one.key < other.key ? -sign : sign
    return sign * (one.start - other.start || one.id - other.id)
  }
}

export class BestRows {
  readonly #order: RowOrder
  readonly #wanted: number
  #rows: RowPosition[] = []
  #worst: RowPosition | undefined

  constructor(order: RowOrder, wanted: number) {
    this.#order = order
    this.#wanted = wanted
  }

  add(row: RowPosition): void {
    if (this.#worst !== undefined && this.#order(row, this.#worst) >= 0) return
    this.#rows.push(row)
    if (this.#rows.length >= 2 * this.#wanted + 100) this.#cut()
  }

  /** Later ones are not wanted; undefined: any is. */
  get worst(): RowPosition | undefined {
    return this.#worst
  }

  #cut(): void {
    this.#rows = this.#rows.toSorted(this.#order).slice(0, this.#wanted)
    this.#worst = this.#rows.length < this.#wanted ? undefined : this.#rows.at(-1)
  }

  /** In their order. */
  get rows(): readonly RowPosition[] {
    this.#cut()
    return this.#rows
  }
}
