/** One token bucket per source, for a bounded number of sources. */

export interface RefillRate {
  /** Tokens that come back per second. */
  readonly packetsPerSecond: number
  /** Tokens that a full bucket holds. */
  readonly burst: number
}

export interface BucketLimits extends RefillRate {
  /** The most sources that are remembered: those that came first and are quiet are forgotten. */
  readonly maxSources: number
}

export interface Bucket {
  tokens: number
  /** Milliseconds UTC. */
  lastSeenAt: number
}

/** How many of the oldest sources are looked at before one that is busy is forgotten. */
const EVICTION_TRIES = 8
const QUIET_MS = 1_000

export const fullBucket = ({ burst }: RefillRate, now: number): Bucket => ({
  tokens: burst,
  lastSeenAt: now,
})

/** Takes the tokens of one packet; false: there are too few. `now` is in milliseconds UTC. */
export function takeFrom(bucket: Bucket, rate: RefillRate, now: number, cost = 1): boolean {
  const elapsedMs = Math.max(0, now - bucket.lastSeenAt)
  const tokens = Math.min(rate.burst, bucket.tokens + (elapsedMs * rate.packetsPerSecond) / 1_000)
  bucket.lastSeenAt = now
  bucket.tokens = tokens < cost ? tokens : tokens - cost
  return tokens >= cost
}

export class TokenBuckets {
  readonly #limits: BucketLimits
  readonly #buckets = new Map<string, Bucket>()

  constructor(limits: BucketLimits) {
    this.#limits = limits
  }

  /** The bucket of a source, full if the source is new. */
  of(source: string, now: number): Bucket {
    return this.#buckets.get(source) ?? this.#begin(source, now)
  }

  get size(): number {
    return this.#buckets.size
  }

  #begin(source: string, now: number): Bucket {
    if (this.#buckets.size >= this.#limits.maxSources) this.#forgetOne(now)
    const bucket = fullBucket(this.#limits, now)
    this.#buckets.set(source, bucket)
    return bucket
  }

  /** Forgets the first that is quiet; a busy one goes to the end of the line with its state. */
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
