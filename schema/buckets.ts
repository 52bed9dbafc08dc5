/** Several values per key; a single value, as most keys have, needs no list. */
export class Buckets<Key, Value extends object> {
  readonly #values = new Map<Key, Value | Value[]>()

  /** The values in the order in which they were added. */
  of(key: Key): readonly Value[] {
    const values = this.#values.get(key)
    if (values === undefined) return none
    return Array.isArray(values) ? values : [values]
  }

  *all(): Generator<Value> {
    for (const values of this.#values.values())
      if (Array.isArray(values)) yield* values
      else yield values
  }

  add(key: Key, value: Value): void {
    const values = this.#values.get(key)
    if (values === undefined) this.#values.set(key, value)
    else if (Array.isArray(values)) values.push(value)
    else this.#values.set(key, [values, value])
  }

  delete(key: Key, value: Value): void {
    const values = this.#values.get(key)
    if (values === value) this.#values.delete(key)
    if (!Array.isArray(values)) return
    const index = values.indexOf(value)
    if (index !== -1) values.splice(index, 1)
    if (values.length === 0) this.#values.delete(key)
  }

  /** Removes all values of a key; without a key, all values. */
  clear(key?: Key): void {
    if (key === undefined) this.#values.clear()
    else this.#values.delete(key)
  }
}

const none: readonly never[] = []
