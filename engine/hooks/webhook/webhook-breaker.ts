/**
 * When a receiver is not asked: after failures in a row it rests, and no call waits for it. After
 * the rest one call tries it; when that fails, the next rest is longer.
 */
export class WebhookBreaker {
  #failures = 0
  #restUntil: number | undefined
  #restMs = FIRST_REST_MS
  #isTried = false

  isResting(now: number): boolean {
    return this.#restUntil !== undefined && now < this.#restUntil
  }

  /** Whether a call may ask now. Who may has to say how that ended. */
  admit(now: number): boolean {
    if (this.#restUntil === undefined) return true
    if (now < this.#restUntil || this.#isTried) return false
    this.#isTried = true
    return true
  }

  /** The call that was admitted has sent nothing. */
  withdrawn(): void {
    this.#isTried = false
  }

  succeeded(): void {
    this.#failures = 0
    this.#restUntil = undefined
    this.#restMs = FIRST_REST_MS
    this.#isTried = false
  }

  /** Returns whether a rest begins with this failure. */
  failed(now: number): boolean {
    this.#failures += 1
    const isTrial = this.#isTried
    this.#isTried = false
    // Those that were sent before the rest began.
    if (this.#restUntil !== undefined && !isTrial) return false
    if (!isTrial && this.#failures < FAILURES_IN_A_ROW) return false
    this.#restUntil = now + this.#restMs
    this.#restMs = Math.min(this.#restMs * 2, LONGEST_REST_MS)
    return true
  }
}

const FAILURES_IN_A_ROW = 10
const FIRST_REST_MS = 1_000
const LONGEST_REST_MS = 30_000
