/** Sources that are not listened to until their time is over. Bounded; the oldest ban gives way. */
import type { Ban } from '../../schema/contracts/engine-port.ts'

export class Bans {
  readonly #max: number
  readonly #bans = new Map<string, { -readonly [key in keyof Ban]: Ban[key] }>()

  constructor(max: number) {
    this.#max = max
  }

  add(source: string, reason: Ban['reason'], now: number, durationMs: number): void {
    this.#bans.delete(source)
    this.#bans.set(source, { source, reason, since: now, until: now + durationMs, dropped: 0 })
    if (this.#bans.size <= this.#max) return
    const [oldest] = this.#bans.keys()
    if (oldest !== undefined) this.#bans.delete(oldest)
  }

  /** Whether a packet of this source is to be dropped, which is counted. */
  holds(source: string, now: number): boolean {
    if (this.#bans.size === 0) return false
    const ban = this.#bans.get(source)
    if (ban === undefined) return false
    if (ban.until <= now) {
      this.#bans.delete(source)
      return false
    }
    ban.dropped += 1
    return true
  }

  /** Whether the source is banned, without counting. */
  has(source: string, now: number): boolean {
    return (this.#bans.get(source)?.until ?? 0) > now
  }

  /** False: there was no such ban. */
  lift(source: string): boolean {
    return this.#bans.delete(source)
  }

  /** Those in force, the newest last. */
  list(now: number): readonly Ban[] {
    return [...this.#bans.values()].filter(({ until }) => until > now).map((ban) => ({ ...ban }))
  }
}
