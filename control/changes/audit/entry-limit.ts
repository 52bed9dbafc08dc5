/** Limits entries per minute for requests without a credential, because any client can send those. */

const ENTRIES_A_MINUTE = 60
const MINUTE_MS = 60_000

export class EntryLimit {
  #minute = -1
  #entries = 0

  /** False when the limit of this minute is reached. `now` in milliseconds UTC. */
  admits(now: number): boolean {
    const minute = Math.floor(now / MINUTE_MS)
    if (minute !== this.#minute) {
      this.#minute = minute
      this.#entries = 0
    }
    this.#entries += 1
    return this.#entries <= ENTRIES_A_MINUTE
  }
}
