/**
 * Work that must not overlap itself, such as loads from the database. Requests during a run share
 * the next run.
 */
import { AsyncLocalStorage } from 'node:async_hooks'

export class OneAtATime<T = void> {
  readonly #work: () => Promise<T>
  /** The work runs outside the transaction of its caller, so that it reads committed rows. */
  readonly #outside = AsyncLocalStorage.snapshot()
  #last: Promise<unknown> = Promise.resolve()
  #next: Promise<T> | undefined

  /** A load reads, then takes over what it has read in one synchronous step. */
  constructor(work: () => Promise<T>) {
    this.#work = work
  }

  /** Settles as a run that began after this call. */
  request(): Promise<T> {
    this.#next ??= this.between(() => {
      this.#next = undefined
      return this.#work()
    })
    return this.#next
  }

  /** Runs other work that must not overlap a run, nor other such work. Not inside a run. */
  between<R>(work: () => Promise<R>): Promise<R> {
    const result = this.#last.then(() => this.#outside(work))
    this.#last = result.catch(() => undefined)
    return result
  }
}
