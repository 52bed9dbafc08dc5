/**
 * A map for what lives briefly, such as calls. V8 gives a `Map` from which entries are deleted a
 * new table again and again, and a former table keeps what it held. Once such a table is old, it
 * takes each value, and all that the value refers to, into the old generation, until that is
 * collected (`npm run bench -- releasing-map`, D133).
 */
export class ReleasingMap<Key, Value> {
  readonly #boxes = new Map<Key, Box<Value>>()

  get size(): number {
    return this.#boxes.size
  }

  has(key: Key): boolean {
    return this.#boxes.has(key)
  }

  get(key: Key): Value | undefined {
    return this.#boxes.get(key)?.value
  }

  set(key: Key, value: Value): void {
    this.#boxes.set(key, { value })
  }

  delete(key: Key): boolean {
    const box = this.#boxes.get(key)
    if (box === undefined) return false
    box.value = undefined
    return this.#boxes.delete(key)
  }

  clear(): void {
    for (const box of this.#boxes.values()) box.value = undefined
    this.#boxes.clear()
  }

  keys(): IterableIterator<Key> {
    return this.#boxes.keys()
  }

  *values(): Generator<Value, void> {
    for (const { value } of this.#boxes.values()) if (value !== undefined) yield value
  }

  *[Symbol.iterator](): Generator<[Key, Value], void> {
    for (const [key, { value }] of this.#boxes) if (value !== undefined) yield [key, value]
  }
}

interface Box<Value> {
  value: Value | undefined
}
