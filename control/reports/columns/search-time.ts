/**
 * The time of a search: what it takes itself, and how long it may be under way with all that
 * others of its thread do in its pauses.
 */
export class SearchTime {
  readonly #now: () => number
  readonly #end: number
  #until: number

  /** @param now milliseconds of a clock that never jumps. */
  constructor(now: () => number, ownMs: number, wholeMs: number) {
    this.#now = now
    this.#until = now() + ownMs
    this.#end = now() + wholeMs
  }

  get isUp(): boolean {
    return this.#now() > Math.min(this.#until, this.#end)
  }

  /** Yields once. */
  *pause(): Generator<void, void> {
    const from = this.#now()
    yield
    this.#until += this.#now() - from
  }
}
