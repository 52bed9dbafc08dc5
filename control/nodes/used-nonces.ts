/** The tokens that were used a moment ago, so that each counts once. */
export class UsedNonces {
  readonly #keptMs: number
  #newer = new Set<string>()
  #older = new Set<string>()
  #turnedAt: number

  /** Each is remembered for at least `keptMs`. `now` is steady time. */
  constructor(keptMs: number, now: number) {
    this.#keptMs = keptMs
    this.#turnedAt = now
  }

  /** False: it was used, or there are more than can be remembered. */
  take(nonce: string, now: number): boolean {
    if (now - this.#turnedAt >= this.#keptMs) this.#turn(now)
    if (this.#newer.has(nonce) || this.#older.has(nonce)) return false
    if (this.#newer.size >= MAX_NONCES) return false
    this.#newer.add(nonce)
    return true
  }

  #turn(now: number): void {
    const isLongAgo = now - this.#turnedAt >= 2 * this.#keptMs
    this.#older = isLongAgo ? new Set() : this.#newer
    this.#newer = new Set()
    this.#turnedAt = now
  }
}

/** 100 bytes each. Other nodes do not ask 3,000 times a second for a minute. */
const MAX_NONCES = 200_000
