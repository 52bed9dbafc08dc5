/** Counts failures by key within a window that begins with the first one; bounded. */

export interface FailureLimits {
  /** So many within the window are too many. */
  readonly max: number
  readonly windowMs: number
  /** Keys that are remembered; beyond, the one that failed first is forgotten. */
  readonly maxKeys: number
}

interface Count {
  readonly since: number
  failures: number
}

export class Failures {
  readonly #limits: FailureLimits
  readonly #counts = new Map<string, Count>()

  constructor(limits: FailureLimits) {
    this.#limits = limits
  }

  /** True with the failure that reaches the limit, and no other. `now` in milliseconds UTC. */
  add(key: string, now: number): boolean {
    const count = this.#current(key, now)
    if (count) {
      count.failures += 1
      return count.failures === this.#limits.max
    }
    this.#counts.delete(key)
    this.#counts.set(key, { since: now, failures: 1 })
    if (this.#counts.size > this.#limits.maxKeys) {
      const [oldest] = this.#counts.keys()
      if (oldest !== undefined) this.#counts.delete(oldest)
    }
    return this.#limits.max === 1
  }

  isReached(key: string, now: number): boolean {
    return (this.#current(key, now)?.failures ?? 0) >= this.#limits.max
  }

  forget(key: string): void {
    this.#counts.delete(key)
  }

  /** Forgets every key that begins so; walks through all of them. */
  forgetAll(prefix: string): void {
    for (const key of this.#counts.keys()) if (key.startsWith(prefix)) this.#counts.delete(key)
  }

  get size(): number {
    return this.#counts.size
  }

  #current(key: string, now: number): Count | undefined {
    const count = this.#counts.get(key)
    return count && now - count.since < this.#limits.windowMs ? count : undefined
  }
}
