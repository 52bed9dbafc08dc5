/** Caches texts that repeat. */

/** Maximum entries; beyond that, the cache is cleared. */
const MAX_REMEMBERED = 10_000

export class Memory<Key, Value> {
  readonly #make: (key: Key) => Value
  readonly #made = new Map<Key, Value>()

  constructor(make: (key: Key) => Value) {
    this.#make = make
  }

  of(key: Key): Value {
    const known = this.#made.get(key)
    if (known !== undefined) return known
    const made = this.#make(key)
    if (this.#made.size === MAX_REMEMBERED) this.#made.clear()
    this.#made.set(key, made)
    return made
  }
}

/** Power of two. Records are ordered, so repeated lookups lie within some hours. */
const SECONDS = 16_384

/** Times as text; those of one second differ only in their end. */
export class SecondTexts {
  readonly #toText: (ms: number) => string
  readonly #seconds = new Float64Array(SECONDS).fill(-1)
  readonly #texts: string[] = Array.from({ length: SECONDS }, () => '')

  /** `toText` writes milliseconds UTC in RFC 3339 with three decimals and `Z`. */
  constructor(toText: (ms: number) => string) {
    this.#toText = toText
  }

  of(ms: number): string {
    const second = Math.floor(ms / 1_000)
    const slot = second & (SECONDS - 1)
    if (this.#seconds[slot] !== second) {
      this.#seconds[slot] = second
      this.#texts[slot] = this.#toText(second * 1_000).slice(0, -4)
    }
    return `${this.#texts[slot] ?? ''}${milliseconds[ms - second * 1_000] ?? ''}`
  }
}

const milliseconds = Array.from({ length: 1_000 }, (_, ms) => `${String(ms).padStart(3, '0')}Z`)
