import type { LRUCache } from 'lru-cache'
import { recentlyUsed } from '../../schema/recently-used.ts'

/**
 * Rows that most requests need, in memory. Requests that need the same row at the same time share
 * one look-up.
 */
export class RememberedRows<K extends string | number, V extends object> {
  readonly #known: LRUCache<K, V>
  readonly #isCurrent: () => boolean
  /** No more than the server has requests. */
  readonly #lookUps = new Map<K, Promise<V | undefined>>()

  /** @param isCurrent false: the entries in memory may be outdated, and are not used. */
  constructor(max: number, isCurrent: () => boolean) {
    this.#known = recentlyUsed(max)
    this.#isCurrent = isCurrent
  }

  get size(): number {
    return this.#known.size
  }

  get(key: K): V | undefined {
    return this.#isCurrent() ? this.#known.get(key) : undefined
  }

  find(key: K, read: () => Promise<V | undefined>): V | Promise<V | undefined> {
    return this.get(key) ?? this.lookUp(key, read)
  }

  /**
   * A row that was read before `clear` may be outdated: it is not cached, and later requests do not
   * wait for it.
   *
   * @param onMissing called for a row that is not there.
   */
  async lookUp(
    key: K,
    read: () => Promise<V | undefined>,
    onMissing?: () => void,
  ): Promise<V | undefined> {
    const underWay = this.#lookUps.get(key)
    if (underWay !== undefined) return underWay
    const lookUp = read()
    const isLatest = (): boolean => this.#lookUps.get(key) === lookUp
    this.#lookUps.set(key, lookUp)
    try {
      const found = await lookUp
      if (isLatest() && found !== undefined) this.#known.set(key, found)
      if (isLatest() && found === undefined) onMissing?.()
      return found
    } finally {
      if (isLatest()) this.#lookUps.delete(key)
    }
  }

  /** Called when rows were changed, also by another process. */
  clear(): void {
    this.#known.clear()
    this.#lookUps.clear()
  }
}
