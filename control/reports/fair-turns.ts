/** Lets a few work at the same time. Readers come in turn, one after the other: many questions of one delay itself. */
import type { Reader } from '../../schema/sql/read-apart.ts'
import { tooManySearches } from './searches.ts'

/** Of one reader. */
const MAX_WAITING = 100

export class FairTurns {
  /** The next one first. */
  readonly #waiting = new Map<Reader, (() => void)[]>()
  #free: number

  /** @param places how many work at the same time. */
  constructor(places: number) {
    this.#free = places
  }

  /** @throws {ApiError} 503: this reader waits for too many. */
  async run<T>(reader: Reader, work: () => Promise<T>): Promise<T> {
    await this.#turnOf(reader)
    try {
      return await work()
    } finally {
      this.#endTurn()
    }
  }

  #turnOf(reader: Reader): Promise<void> {
    if (this.#free > 0) {
      this.#free -= 1
      return Promise.resolve()
    }
    const own = this.#waiting.get(reader) ?? []
    if (own.length >= MAX_WAITING) throw tooManySearches()
    return new Promise((resolve) => {
      own.push(resolve)
      this.#waiting.set(reader, own)
    })
  }

  #endTurn(): void {
    for (const [reader, own] of this.#waiting) {
      const begin = own.shift()
      this.#waiting.delete(reader)
      // Now it is the last one.
      if (own.length > 0) this.#waiting.set(reader, own)
      begin?.()
      return
    }
    this.#free += 1
  }
}
