/**
 * Locks a pair of name and address after five failures in fifteen minutes (SPECIFICATION.md §4.2), on all nodes of
 * a database together.
 */
import { ApiError } from '../http/api-error.ts'
import type { Bucket, Permits } from './permits.ts'
import { RateWindow } from './rate-window.ts'
import { recentlyUsed } from '../http/recently-used.ts'
import { sourceKey } from '../../schema/net/source-address.ts'

const MAX_FAILURES = 5
const WINDOW_MS = 15 * 60_000
const MAX_PAIRS = 20_000

export class LoginGuard {
  readonly #failures = recentlyUsed<string, RateWindow>(MAX_PAIRS)
  readonly #permits: Permits | undefined

  /** @param permits undefined: no other process serves from this database. */
  constructor(permits: Permits | undefined) {
    this.#permits = permits
  }

  /** Rejects with 429 while the pair is locked, whether the password is correct or not. */
  async refuseLocked(name: string, address: string, now: number): Promise<void> {
    const waitMs = await this.#waitMs(pairOf(name, address), now)
    if (waitMs > 0) throw locked(waitMs)
  }

  async isLocked(name: string, address: string, now: number): Promise<boolean> {
    return (await this.#waitMs(pairOf(name, address), now)) > 0
  }

  /**
   * Counts a failure; rejects with 429 when the pair is locked already: of many attempts at once, only five may
   * learn that they failed.
   */
  async failed(name: string, address: string, now: number): Promise<void> {
    const pair = pairOf(name, address)
    if (this.#permits !== undefined) {
      const { granted, opensInMs } = await this.#permits.take(
        bucketOf(pair),
        MAX_FAILURES,
        1,
        WINDOW_MS,
      )
      if (granted === 0) throw locked(opensInMs)
      return
    }
    const window = this.#failures.get(pair) ?? new RateWindow(MAX_FAILURES, WINDOW_MS)
    const isCounted = window.admit(now)
    this.#failures.set(pair, window)
    if (!isCounted) throw locked(window.opensAt(now) - now)
  }

  async succeeded(name: string, address: string): Promise<void> {
    const pair = pairOf(name, address)
    this.#failures.delete(pair)
    await this.#permits?.clear(bucketOf(pair))
  }

  /** Zero: it is not locked. */
  async #waitMs(pair: string, now: number): Promise<number> {
    if (this.#permits !== undefined) {
      const { used, opensInMs } = await this.#permits.take(
        bucketOf(pair),
        MAX_FAILURES,
        0,
        WINDOW_MS,
      )
      return used < MAX_FAILURES ? 0 : opensInMs
    }
    const window = this.#failures.get(pair)
    return window?.isFull(now) === true ? Math.max(1, window.opensAt(now) - now) : 0
  }
}

const locked = (waitMs: number): ApiError =>
  new ApiError(429, 'login_locked', 'Too many failed logins', {
    headers: { 'Retry-After': String(Math.max(1, Math.ceil(waitMs / 1_000))) },
  })

const bucketOf = (pair: string): Bucket => ({ kind: 'failed login', name: pair })

const pairOf = (name: string, address: string): string =>
  `${sourceKey(address)} ${name.toLowerCase()}`
