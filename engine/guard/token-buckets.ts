/** One token bucket per source, for a bounded number of sources. */

export interface BucketLimits {
  /** Packets per second that a source may send for ever. */
  readonly packetsPerSecond: number
  /** Packets that it may send at once after a pause. */
  readonly burst: number
  /** Sources that are remembered; beyond, those that came first and are quiet are forgotten. */
  readonly maxSources: number
}

interface Bucket {
  tokens: number
  /** Milliseconds UTC. */
  lastSeenAt: number
}

/** How many of the oldest sources are looked at before one that is busy is forgotten. */
const EVICTION_TRIES = 8
const QUIET_MS = 1_000

export class TokenBuckets {
  readonly #limits: BucketLimits
  readonly #buckets = new Map<string, Bucket>()

  constructor(limits: BucketLimits) {
    this.#limits = limits
  }

  /** Whether one more packet of this source is within its limit. `now` in milliseconds UTC. */
  take(source: string, now: number): boolean {
    const bucket = this.#buckets.get(source)
    if (bucket === undefined) return this.#begin(source, now)
    const { packetsPerSecond, burst } = this.#limits
    const elapsedMs = Math.max(0, now - bucket.lastSeenAt)
    const tokens = Math.min(burst, bucket.tokens + (elapsedMs * packetsPerSecond) / 1_000)
    bucket.lastSeenAt = now
    bucket.tokens = tokens < 1 ? tokens : tokens - 1
    return tokens >= 1
  }

  get size(): number {
    return this.#buckets.size
  }

  #begin(source: string, now: number): boolean {
    if (this.#buckets.size >= this.#limits.maxSources) this.#forgetOne(now)
    this.#buckets.set(source, { tokens: this.#limits.burst - 1, lastSeenAt: now })
    return true
  }

  /** The first that is quiet; a busy one goes to the end of the line and keeps its state. */
  #forgetOne(now: number): void {
    let tries = 0
    for (const [source, bucket] of this.#buckets) {
      this.#buckets.delete(source)
      tries += 1
      if (tries === EVICTION_TRIES || now - bucket.lastSeenAt > QUIET_MS) return
      this.#buckets.set(source, bucket)
    }
  }
}
