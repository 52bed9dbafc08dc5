/** Look-ups of what every request needs: those that need the same at the same time share one. */

export class LookUps<K, V> {
  /** No more than the server has requests. */
  readonly #underWay = new Map<K, Promise<V>>()

  /**
   * Remembers what `read` finds. What was read before `clear` may be outdated: it is not remembered, and later requests
   * do not wait for it.
   */
  async run(key: K, read: () => Promise<V>, remember: (found: V) => void): Promise<V> {
    const underWay = this.#underWay.get(key)
    if (underWay !== undefined) return underWay
    const lookUp = read()
    const isCurrent = (): boolean => this.#underWay.get(key) === lookUp
    this.#underWay.set(key, lookUp)
    try {
      const found = await lookUp
      if (isCurrent()) remember(found)
      return found
    } finally {
      if (isCurrent()) this.#underWay.delete(key)
    }
  }

  clear(): void {
    this.#underWay.clear()
  }
}
