/** Leaves a hook out that fails again and again: nobody waits for what does not come. Pure. */

/** Failures in a row. */
const MAX_FAILURES = 10
const OPEN_MS = 5_000

export class CircuitBreaker {
  readonly #now: () => number
  #failures = 0
  /** Undefined: closed. Until then the hook is left out; after it one question is a trial. */
  #openUntil: number | undefined
  #isTrying = false

  constructor(now: () => number) {
    this.#now = now
  }

  get isOpen(): boolean {
    return this.#openUntil !== undefined
  }

  /** Whether the hook is asked. After a yes, `succeeded` or `failed` follows. */
  admits(): boolean {
    if (this.#openUntil === undefined) return true
    if (this.#isTrying || this.#now() < this.#openUntil) return false
    this.#isTrying = true
    return true
  }

  succeeded(): void {
    this.#failures = 0
    this.#openUntil = undefined
    this.#isTrying = false
  }

  /** @returns whether the breaker has opened by it. */
  failed(): boolean {
    this.#failures += 1
    const isTrial = this.#isTrying
    this.#isTrying = false
    if (!isTrial && (this.isOpen || this.#failures < MAX_FAILURES)) return false
    this.#openUntil = this.#now() + OPEN_MS
    return true
  }
}
