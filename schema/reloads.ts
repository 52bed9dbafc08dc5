/** Memory that follows the database: one load after another, and one more for all requests while one runs. */
import { AsyncLocalStorage } from 'node:async_hooks'

export class Reloads {
  readonly #load: () => Promise<void>
  /** Loads read what is committed, whatever transaction asks for them. */
  readonly #outside = AsyncLocalStorage.snapshot()
  #last: Promise<unknown> = Promise.resolve()
  #next: Promise<void> | undefined

  /** `load` reads, then takes over what it has read in one synchronous step. */
  constructor(load: () => Promise<void>) {
    this.#load = load
  }

  /** Resolves when what was stored before this call is taken over; rejects when it could not be read. */
  request(): Promise<void> {
    this.#next ??= this.between(() => {
      this.#next = undefined
      return this.#load()
    })
    return this.#next
  }

  /** Runs work that must not overlap a load, nor other such work. Not inside a load. */
  between<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#last.then(() => this.#outside(work))
    this.#last = result.catch(() => undefined)
    return result
  }
}
