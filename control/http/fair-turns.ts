/** Work of several askers, a few at a time: who has asked for much lets everybody else go first. */
import type { ApiError } from './api-error.ts'

export class FairTurns<Asker> {
  /** The next one first. */
  readonly #waiting = new Map<Asker, (() => void)[]>()
  readonly #maxWaiting: number
  readonly #refusal: () => ApiError
  #free: number

  /**
   * @param places how many work at the same time.
   * @param maxWaiting of one asker; `refusal` answers more.
   */
  constructor(places: number, maxWaiting: number, refusal: () => ApiError) {
    this.#free = places
    this.#maxWaiting = maxWaiting
    this.#refusal = refusal
  }

  /** @throws {ApiError} this asker waits for too many. */
  async run<T>(asker: Asker, work: () => Promise<T>): Promise<T> {
    await this.#turnOf(asker)
    try {
      return await work()
    } finally {
      this.#endTurn()
    }
  }

  #turnOf(asker: Asker): Promise<void> {
    if (this.#free > 0) {
      this.#free -= 1
      return Promise.resolve()
    }
    const own = this.#waiting.get(asker) ?? []
    if (own.length >= this.#maxWaiting) throw this.#refusal()
    return new Promise((resolve) => {
      own.push(resolve)
      this.#waiting.set(asker, own)
    })
  }

  #endTurn(): void {
    for (const [asker, own] of this.#waiting) {
      const begin = own.shift()
      this.#waiting.delete(asker)
      // Now it is the last one.
      if (own.length > 0) this.#waiting.set(asker, own)
      begin?.()
      return
    }
    this.#free += 1
  }
}
