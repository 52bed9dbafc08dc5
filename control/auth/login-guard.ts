import { sourceKey } from '../../schema/net/ip-address.ts'
import type { RequestWindow, RequestWindows } from './rate-window.ts'
import { ApiError } from '../http/api-error.ts'
import { recentlyUsed } from '../../schema/recently-used.ts'

const MAX_FAILURES = 5
const WINDOW_MS = 15 * 60_000

const MAX_PAIRS = 20_000

/**
 * Locks a pair of name and address after five failures in fifteen minutes (SPECIFICATION.md §4.2),
 * on all instances of a database together.
 */
export class LoginGuard {
  readonly #failures = recentlyUsed<string, RequestWindow>(MAX_PAIRS, (window) => window.close?.())
  readonly #windows: RequestWindows
  readonly #maxFailures: number

  constructor(windows: RequestWindows, maxFailures = MAX_FAILURES) {
    this.#windows = windows
    this.#maxFailures = maxFailures
  }

  /** Rejects with 429 while the pair is locked, whether the password is correct or not. */
  async refuseLocked(name: string, address: string, now: number): Promise<void> {
    const window = this.#windowOf(name, address)
    if (await window.isFull(now)) throw locked(window, now)
  }

  async isLocked(name: string, address: string, now: number): Promise<boolean> {
    return this.#windowOf(name, address).isFull(now)
  }

  /**
   * Counts a failure; rejects with 429 when the pair is locked already: of many attempts at once,
   * only five may learn that they failed.
   */
  async failed(name: string, address: string, now: number): Promise<void> {
    const window = this.#windowOf(name, address)
    if (!(await window.admit(now))) throw locked(window, now)
  }

  succeeded(name: string, address: string): void {
    this.#windowOf(name, address).clear()
  }

  #windowOf(name: string, address: string): RequestWindow {
    const pair = `${sourceKey(address)} ${name.toLowerCase()}`
    const known = this.#failures.get(pair)
    if (known !== undefined) return known
    const window = this.#windows.open('failed login', pair, this.#maxFailures, WINDOW_MS)
    this.#failures.set(pair, window)
    return window
  }
}

const locked = (window: RequestWindow, now: number): ApiError =>
  new ApiError(429, 'login_locked', 'Too many failed logins', {
    headers: { 'Retry-After': String(Math.max(1, Math.ceil((window.opensAt(now) - now) / 1_000))) },
  })
