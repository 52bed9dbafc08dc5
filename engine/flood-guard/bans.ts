/** Sources whose packets are dropped for a time. Bounded; the oldest ban gives way. */
import type { Ban } from '../../schema/contracts/engine.ts'

/** As all instances have it. */
export type StoredBan = Omit<Ban, 'dropped'>

type Entry = { -readonly [key in keyof Ban]: Ban[key] } & {
  /** The ban is in the database; it ends when it is not there any more. */
  isStored: boolean
}

export class Bans {
  readonly #max: number
  readonly #bans = new Map<string, Entry>()

  constructor(max: number) {
    this.#max = max
  }

  add(source: string, reason: Ban['reason'], now: number, durationMs: number): void {
    this.#bans.delete(source)
    this.#set({ source, reason, since: now, until: now + durationMs }, 0, false)
  }

  #set(ban: StoredBan, dropped: number, isStored: boolean): void {
    this.#bans.set(ban.source, { ...ban, dropped, isStored })
    if (this.#bans.size <= this.#max) return
    const [oldest] = this.#bans.keys()
    if (oldest !== undefined) this.#bans.delete(oldest)
  }

  /** The ban is stored: from now on it ends when it is removed there. */
  noteStored(source: string): void {
    const ban = this.#bans.get(source)
    if (ban !== undefined) ban.isStored = true
  }

  /**
   * Follows what is stored for all instances, the oldest first. A ban that is not stored yet stays.
   *
   * @param sources the sources that were read; undefined: all.
   */
  takeStored(stored: readonly StoredBan[], sources?: ReadonlySet<string>): void {
    const found = new Set(stored.map(({ source }) => source))
    for (const source of sources ?? this.#bans.keys())
      if (this.#bans.get(source)?.isStored === true && !found.has(source)) this.#bans.delete(source)
    for (const ban of stored) {
      const known = this.#bans.get(ban.source)
      if (known === undefined) this.#set(ban, 0, true)
      else if (known.isStored || known.until <= ban.until)
        Object.assign(known, ban, { isStored: true })
    }
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

  /** Bans in force, the newest last. */
  list(now: number): readonly Ban[] {
    return [...this.#bans.values()]
      .filter(({ until }) => until > now)
      .map(({ isStored: _, ...ban }) => ban)
  }
}
