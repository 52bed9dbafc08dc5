/** Times of the calls that began in the last second, oldest first from `#start` on. */
export class RollingSecond {
  #times: number[] = []
  #start = 0

  /** Returns how many began in the second before `now`; earlier ones are dropped. */
  count(now: number): number {
    while ((this.#times[this.#start] ?? Infinity) <= now - 1_000) this.#start += 1
    return this.#times.length - this.#start
  }

  add(now: number): void {
    // Drops earlier times also where nobody counts, as with emergency calls.
    this.count(now)
    if (this.#start > 1_000) this.#dropPast()
    this.#times.push(now)
  }

  #dropPast(): void {
    this.#times = this.#times.slice(this.#start)
    this.#start = 0
  }
}
