/** The places of numbers that are not NaN: a map of numbers above 2^31 takes ten times as long. */
export class CodeTable {
  #mask = 1_023
  #keys = new Float64Array(this.#mask + 1).fill(NaN)
  #places = new Int32Array(this.#mask + 1)
  #size = 0

  /** -1: there is none. */
  get(key: number): number {
    const at = this.#find(key)
    return this.#keys[at] === key ? (this.#places[at] ?? -1) : -1
  }

  set(key: number, place: number): void {
    const at = this.#find(key)
    if (this.#keys[at] !== key) this.#size += 1
    this.#keys[at] = key
    this.#places[at] = place
    // Half of the table stays free.
    if (2 * this.#size > this.#mask) this.#grow()
  }

  /** The slot of the key, or the free one where it would be. */
  #find(key: number): number {
    const [keys, mask] = [this.#keys, this.#mask]
    const high = Math.floor(key / 0x1_0000_0000)
    let hash =
      Math.imul((key - high * 0x1_0000_0000) | 0, 0x9e37_79b1) ^ Math.imul(high, 0x85eb_ca77)
    hash ^= hash >>> 15
    let at = hash & mask
    for (;;) {
      const known = keys[at] ?? NaN
      if (known === key || Number.isNaN(known)) return at
      at = (at + 1) & mask
    }
  }

  #grow(): void {
    const [keys, places] = [this.#keys, this.#places]
    this.#mask = 2 * this.#mask + 1
    this.#keys = new Float64Array(this.#mask + 1).fill(NaN)
    this.#places = new Int32Array(this.#mask + 1)
    for (const [from, key] of keys.entries()) {
      if (Number.isNaN(key)) continue
      const at = this.#find(key)
      this.#keys[at] = key
      this.#places[at] = places[from] ?? -1
    }
  }
}
