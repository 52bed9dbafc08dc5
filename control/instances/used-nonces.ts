/** The tokens that were used a moment ago, so that each counts once. */
export class UsedNonces {
  readonly #rememberMs: number
  #newer = new Set<string>()
  #older = new Set<string>()
  #rotatedAt: number

  /** Each is remembered for at least `rememberMs`. `now` is steady time. */
  constructor(rememberMs: number, now: number) {
    this.#rememberMs = rememberMs
    this.#rotatedAt = now
  }

  /** False: it was used, or there are more than can be remembered. */
  take(nonce: string, now: number): boolean {
    if (now - this.#rotatedAt >= this.#rememberMs) this.#rotate(now)
    if (this.#newer.has(nonce) || this.#older.has(nonce)) return false
    if (this.#newer.size >= MAX_NONCES) return false
    this.#newer.add(nonce)
    return true
  }

  #rotate(now: number): void {
    const isLongAgo = now - this.#rotatedAt >= 2 * this.#rememberMs
    this.#older = isLongAgo ? new Set() : this.#newer
    this.#newer = new Set()
    this.#rotatedAt = now
  }
}

/** 100 bytes each. Other instances do not ask 3,000 times a second for a minute. */
const MAX_NONCES = 200_000
