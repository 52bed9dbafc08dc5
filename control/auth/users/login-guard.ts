/** Locks a pair of name and address after five failures in fifteen minutes (SPECIFICATION.md §4.2). */
import { ApiError } from '../../http/api-error.ts'
import { RateWindow } from '../../middleware/rate-window.ts'
import { sourceKey } from '../../../schema/net/source-address.ts'
import { recentlyUsed } from '../../recently-used.ts'

const MAX_FAILURES = 5
const WINDOW_MS = 15 * 60_000
const MAX_PAIRS = 20_000

export class LoginGuard {
  readonly #failures = recentlyUsed<string, RateWindow>(MAX_PAIRS)

  /** Throws 429 while the pair is locked, whether the password is correct or not. */
  refuseLocked(name: string, address: string, now: number): void {
    const window = this.#failures.get(pairOf(name, address))
    if (window === undefined || !this.isLocked(name, address, now)) return
    const seconds = Math.max(1, Math.ceil((window.opensAt(now) - now) / 1_000))
    throw new ApiError(429, 'login_locked', 'Too many failed logins', {
      headers: { 'Retry-After': String(seconds) },
    })
  }

  isLocked(name: string, address: string, now: number): boolean {
    return this.#failures.get(pairOf(name, address))?.isFull(now) === true
  }

  failed(name: string, address: string, now: number): void {
    const pair = pairOf(name, address)
    const window = this.#failures.get(pair) ?? new RateWindow(MAX_FAILURES, WINDOW_MS)
    window.admit(now)
    this.#failures.set(pair, window)
  }

  succeeded(name: string, address: string): void {
    this.#failures.delete(pairOf(name, address))
  }
}

const pairOf = (name: string, address: string): string =>
  `${sourceKey(address)} ${name.toLowerCase()}`
