/** Several values of one key; most keys have one, which is kept without a list. */
export class Buckets<Key, Value extends object> {
  readonly #values = new Map<Key, Value | Value[]>()

  /** In the order in which they were added. */
  of(key: Key): readonly Value[] {
    const found = this.#values.get(key)
    if (found === undefined) return none
    return Array.isArray(found) ? found : [found]
  }

  *all(): Generator<Value> {
    for (const found of this.#values.values())
      if (Array.isArray(found)) yield* found
      else yield found
  }

  add(key: Key, value: Value): void {
    const found = this.#values.get(key)
    if (found === undefined) this.#values.set(key, value)
    else if (Array.isArray(found)) found.push(value)
    else this.#values.set(key, [found, value])
  }

  delete(key: Key, value: Value): void {
    const found = this.#values.get(key)
    if (found === value) this.#values.delete(key)
    if (!Array.isArray(found)) return
    const index = found.indexOf(value)
    if (index !== -1) found.splice(index, 1)
    if (found.length === 0) this.#values.delete(key)
  }

  /** All of a key; undefined: of every one. */
  clear(key?: Key): void {
    if (key === undefined) this.#values.clear()
    else this.#values.delete(key)
  }
}

const none: readonly never[] = []
