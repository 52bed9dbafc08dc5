/**
 * A rolling window of requests that several nodes admit together: never more than the limit. A node takes permits
 * from the database, one at first and more while they are used up quickly, so that a client at its
 * limit costs a node some thirty statements a minute. A permit is used within five seconds or not at all, and counts for a minute
 * after these: a client that is at its limit gets it in each 65 s, and permits that a node did not use are lost to the
 * others for as long.
 */
import { isUnstored } from '../../schema/storage/storage.ts'
import type { Bucket, Permits } from './permits.ts'
import { RateWindow, type RequestWindow } from './rate-window.ts'

const USABLE_MS = 5_000
/** A node takes at most this part of the limit at once. */
const LARGEST_PART = 1 / 25
/**
 * While the database is away, each node admits this part of the limit by itself: 16 nodes together do not exceed it.
 * In the minute in which it went away, what was admitted before is added to that.
 */
const PART_ALONE = 1 / 16
/** So long it is not asked again. */
const AWAY_MS = 1_000

export class SharedWindow implements RequestWindow {
  readonly #permits: Permits
  readonly #bucket: Bucket
  readonly #windowMs: number
  readonly #alone: RateWindow
  #limit: number
  #left = 0
  #usableUntil = -Infinity
  #wanted = 1
  #used = 0
  #opensAt = -Infinity
  #closedUntil = -Infinity
  #isAway = false
  #asksAgainAt = -Infinity
  #asking: Promise<void> | undefined

  constructor(permits: Permits, bucket: Bucket, limit: number, windowMs: number) {
    this.#permits = permits
    this.#bucket = bucket
    this.#limit = limit
    this.#windowMs = windowMs
    this.#alone = new RateWindow(partOf(limit, PART_ALONE), windowMs)
  }

  get limit(): number {
    return this.#limit
  }

  /** `now` is steady time. */
  admit(now: number): boolean | Promise<boolean> {
    return this.#admitAtOnce(now) ?? this.#admitLater(now)
  }

  remaining(now: number): number {
    if (this.#isAway) return this.#alone.remaining(now)
    const left = now < this.#usableUntil ? this.#left : 0
    return Math.max(0, this.#limit - this.#used) + left
  }

  oldestLeavesAt(now: number): number {
    return Math.max(now, this.#isAway ? this.#alone.oldestLeavesAt(now) : this.#opensAt)
  }

  opensAt(now: number): number {
    return Math.max(now, this.#isAway ? this.#alone.opensAt(now) : this.#closedUntil)
  }

  setLimit(limit: number): void {
    this.#limit = limit
    this.#alone.setLimit(partOf(limit, PART_ALONE))
    this.#left = 0
    this.#closedUntil = -Infinity
  }

  /** Undefined: the database has to be asked. */
  #admitAtOnce(now: number): boolean | undefined {
    if (this.#isAway) return this.#admitAlone(now)
    if (now < this.#closedUntil) return false
    if (this.#left === 0 || now >= this.#usableUntil) return undefined
    this.#left -= 1
    return true
  }

  /** No request waits for a database that is away. */
  #admitAlone(now: number): boolean {
    if (now >= this.#asksAgainAt) this.#asked(now).catch(() => undefined)
    return this.#alone.admit(now)
  }

  async #admitLater(now: number): Promise<boolean> {
    for (;;) {
      await this.#asked(now)
      const verdict = this.#admitAtOnce(now)
      if (verdict !== undefined) return verdict
    }
  }

  /** One question at a time. */
  #asked(now: number): Promise<void> {
    this.#asking ??= this.#ask(now).finally(() => (this.#asking = undefined))
    return this.#asking
  }

  /** From before the question on, because the answer may be late. */
  async #ask(now: number): Promise<void> {
    const isBusy = this.#left === 0 && now < this.#usableUntil
    const most = partOf(this.#limit, LARGEST_PART)
    this.#wanted = isBusy ? Math.min(this.#wanted * 2, most) : 1
    try {
      const windowMs = this.#windowMs + USABLE_MS
      const { granted, used, opensInMs } = await this.#permits.take(
        this.#bucket,
        this.#limit,
        this.#wanted,
        windowMs,
      )
      this.#left = granted
      this.#used = used
      this.#usableUntil = now + USABLE_MS
      this.#opensAt = now + opensInMs
      if (granted === 0) this.#closedUntil = this.#opensAt
      this.#isAway = false
    } catch (error) {
      if (!isUnstored(error)) throw error
      this.#isAway = true
      this.#asksAgainAt = now + AWAY_MS
    }
  }
}

const partOf = (limit: number, part: number): number => Math.max(1, Math.floor(limit * part))
