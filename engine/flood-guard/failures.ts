import type { LRUCache } from 'lru-cache'
import { recentlyUsed } from '../../schema/recently-used.ts'

interface FailureLimits {
  /** Failures within the window that are too many. */
  readonly max: number
  readonly windowMs: number
  /** Keys that are remembered; beyond, the one that failed first is forgotten. */
  readonly maxKeys: number
}

interface Count {
  readonly since: number
  failures: number
  /** When there were too many. */
  reachedAt?: number
}

/** Counts failures by key within a window that begins with the first one; bounded. */
export class Failures {
  readonly #limits: FailureLimits
  /** In the order of their first failures. */
  readonly #counts: LRUCache<string, Count>

  constructor(limits: FailureLimits) {
    this.#limits = limits
    this.#counts = recentlyUsed(limits.maxKeys)
  }

  /** True with the failure that reaches the limit, and no other. `now` in milliseconds UTC. */
  add(key: string, now: number): boolean {
    const count = this.#current(key, now)
    if (count) {
      count.failures += 1
      if (count.failures !== this.#limits.max) return false
      count.reachedAt = now
      return true
    }
    this.#counts.set(key, { since: now, failures: 1 })
    return this.#limits.max === 1
  }

  isReached(key: string, now: number): boolean {
    return (this.#current(key, now)?.failures ?? 0) >= this.#limits.max
  }

  countOf(key: string, now: number): number {
    return this.#current(key, now)?.failures ?? 0
  }

  /** Takes back so many failures. */
  take(key: string, failures: number, now: number): void {
    const count = this.#current(key, now)
    if (count === undefined) return
    count.failures -= failures
    if (count.failures <= 0) this.#counts.delete(key)
  }

  /** Keys with too many failures, and how long that counts. Walks through all of them. */
  reached(
    now: number,
  ): readonly { readonly key: string; readonly since: number; readonly until: number }[] {
    const { max, windowMs } = this.#limits
    return [...this.#counts.entries()]
      .toReversed()
      .flatMap(([key, { since, failures, reachedAt = since }]) =>
        failures >= max && now - since < windowMs
          ? [{ key, since: reachedAt, until: since + windowMs }]
          : [],
      )
  }

  forget(key: string): void {
    this.#counts.delete(key)
  }

  /** Forgets every key that begins so; walks through all of them. */
  forgetAll(prefix: string): void {
    for (const key of [...this.#counts.keys()]) if (key.startsWith(prefix)) this.#counts.delete(key)
  }

  #current(key: string, now: number): Count | undefined {
    const count = this.#counts.peek(key)
    return count && now - count.since < this.#limits.windowMs ? count : undefined
  }
}
