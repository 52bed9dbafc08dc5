/** Windows of requests: how many a client makes in a minute, on one instance or on all together. */
import { createHash } from 'node:crypto'
import type { RequestShares, Share } from '../../schema/contracts/limits.ts'
import type { Platform } from '../http/platform.ts'

/**
 * How many requests of a client are admitted. Times are those of one steady clock, in milliseconds.
 */
export interface RequestWindow {
  readonly limit: number
  /** Counts a request unless the window is full: a denied one uses no quota. */
  admit(now: number): boolean | Promise<boolean>
  /** Whether a request would be denied. */
  isFull(now: number): boolean | Promise<boolean>
  remaining(now: number): number
  /** When the oldest hit leaves the window; `now` when there is none. */
  oldestLeavesAt(now: number): number
  /** When the next hit will be admitted. */
  opensAt(now: number): number
  setLimit(limit: number): void
  /** Begins to count anew, on all instances. */
  clear(): void
  /** It is not used any more. Absent: nobody has to know. */
  close?(): void
}

/** Opens the windows of this instance. */
export class RequestWindows {
  readonly #deps: Pick<Platform, 'requestShares' | 'steadyNow'>

  constructor(deps: Pick<Platform, 'requestShares' | 'steadyNow'>) {
    this.#deps = deps
  }

  /** @param name what is counted together, such as `17` of keys; may be text of a client. */
  open(kind: SharedKind, name: string, limit: number, windowMs: number): RequestWindow {
    const { requestShares: shares, steadyNow } = this.#deps
    if (shares === undefined) return new RateWindow(limit, windowMs)
    const resource = `${kind} ${createHash('sha256').update(name).digest('base64url').slice(0, 22)}`
    return new SharedWindow(shares, resource, limit, windowMs, steadyNow)
  }
}

type SharedKind = 'key' | 'session' | 'login' | 'failed login'

/**
 * An exact rolling window: at most `limit` hits in any `windowMs` milliseconds. The time of each
 * hit is stored in a ring that grows up to the limit, so memory grows only with use. 0.13 µs per
 * hit.
 */
export class RateWindow implements RequestWindow {
  readonly #windowMs: number
  #limit: number
  #ring: Float64Array
  /** Index of the oldest hit. */
  #start = 0
  #count = 0
  /** The clock may step back; the window does not. */
  #latest = -Infinity

  constructor(limit: number, windowMs: number) {
    this.#limit = limit
    this.#windowMs = windowMs
    this.#ring = new Float64Array(Math.min(limit, INITIAL_CAPACITY))
  }

  get limit(): number {
    return this.#limit
  }

  /** Counts a hit unless the window is full: a denied hit uses no quota. */
  admit(now: number): boolean {
    const time = this.#forget(now)
    if (this.#count >= this.#limit) return false
    if (this.#count === this.#ring.length) this.#resize(this.#count * 2)
    this.#ring[(this.#start + this.#count) % this.#ring.length] = time
    this.#count += 1
    return true
  }

  /** Hits in the window. */
  count(now: number): number {
    this.#forget(now)
    return this.#count
  }

  isFull(now: number): boolean {
    return this.count(now) >= this.#limit
  }

  remaining(now: number): number {
    return Math.max(0, this.#limit - this.count(now))
  }

  /** When the oldest hit leaves the window, in milliseconds; `now` when there is none. */
  oldestLeavesAt(now: number): number {
    this.#forget(now)
    return this.#count === 0 ? now : this.#hit(0) + this.#windowMs
  }

  /**
   * When the next hit will be admitted. After the limit was lowered, more than one hit must leave
   * first.
   */
  opensAt(now: number): number {
    this.#forget(now)
    return this.#count < this.#limit ? now : this.#hit(this.#count - this.#limit) + this.#windowMs
  }

  /** Takes effect immediately; earlier hits count against the new limit. */
  setLimit(limit: number): void {
    this.#limit = limit
  }

  clear(): void {
    this.#count = 0
  }

  /** A hit at `t` counts until `t + windowMs`, exclusive. */
  #forget(now: number): number {
    const time = Math.max(now, this.#latest)
    this.#latest = time
    while (this.#count > 0 && this.#hit(0) + this.#windowMs <= time) {
      this.#start = (this.#start + 1) % this.#ring.length
      this.#count -= 1
    }
    return time
  }

  #hit(index: number): number {
    return this.#ring[(this.#start + index) % this.#ring.length] ?? 0
  }

  #resize(capacity: number): void {
    const ring = new Float64Array(Math.max(1, Math.min(capacity, this.#limit)))
    for (let i = 0; i < this.#count; i += 1) ring[i] = this.#hit(i)
    this.#ring = ring
    this.#start = 0
  }
}

const INITIAL_CAPACITY = 16

/**
 * An instance admits this part of the limit while the database is away: 16 instances together do
 * not exceed it.
 */
const PART_ALONE = 1 / 16

/**
 * A rolling window of requests that several instances admit together: never more than the limit.
 * The instance counts its own requests, and has a share of the limit for them.
 */
class SharedWindow implements RequestWindow {
  readonly #hits: RateWindow
  readonly #share: Share
  readonly #shares: RequestShares
  readonly #resource: string
  readonly #windowMs: number

  constructor(
    shares: RequestShares,
    resource: string,
    limit: number,
    windowMs: number,
    now: () => number,
  ) {
    this.#hits = new RateWindow(limit, windowMs)
    this.#shares = shares
    this.#resource = resource
    this.#windowMs = windowMs
    const used = (): number => this.#hits.count(now())
    this.#share = shares.of(resource, used, () => this.#hits.clear())
  }

  get limit(): number {
    return this.#hits.limit
  }

  admit(now: number): boolean | Promise<boolean> {
    if (this.#hits.isFull(now)) return false
    if (this.#share.admits(this.limit)) return this.#hits.admit(now)
    // No request waits for a database that is away.
    return this.#share.isAnswered ? this.#ask(now) : this.#admitAlone(now)
  }

  async isFull(now: number): Promise<boolean> {
    if (this.#hits.isFull(now)) return true
    const hold = await this.#share.obtain(this.limit)
    hold.end()
    return hold.isKnown ? !hold.isGiven : this.#aloneRemaining(now) === 0
  }

  remaining(now: number): number {
    if (!this.#share.isAnswered) return this.#aloneRemaining(now)
    return Math.max(0, this.#hits.remaining(now) - this.#share.elsewhere)
  }

  oldestLeavesAt(now: number): number {
    return this.#hits.oldestLeavesAt(now)
  }

  /** When requests of other instances leave the window is not known here. */
  opensAt(now: number): number {
    if (this.#hits.isFull(now)) return this.#hits.opensAt(now)
    return this.#hits.count(now) > 0 ? this.#hits.oldestLeavesAt(now) : now + this.#windowMs
  }

  setLimit(limit: number): void {
    this.#hits.setLimit(limit)
  }

  clear(): void {
    this.#hits.clear()
    this.#shares.reset(this.#resource)
  }

  close(): void {
    this.#shares.forget(this.#resource)
  }

  async #ask(now: number): Promise<boolean> {
    const hold = await this.#share.obtain(this.limit)
    const isGiven = hold.isGiven && this.#share.admits(this.limit, 1)
    const isAdmitted = hold.isKnown ? isGiven && this.#hits.admit(now) : this.#admitAlone(now)
    hold.end()
    return isAdmitted
  }

  #admitAlone(now: number): boolean {
    return this.#aloneRemaining(now) > 0 && this.#hits.admit(now)
  }

  #aloneRemaining(now: number): number {
    const part = Math.max(1, Math.floor(this.limit * PART_ALONE))
    return Math.max(0, part - this.#hits.count(now))
  }
}
