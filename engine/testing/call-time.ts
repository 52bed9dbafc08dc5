/** The time of a call that is tested: hooks that are asked about it see it as `new Date()`. */
import { AsyncLocalStorage } from 'node:async_hooks'

export class CallTime {
  readonly #at = new AsyncLocalStorage<number>()
  /** That of the process, or of a test that has put its own in its place. */
  #real = globalThis.Date
  #shown = this.#shownDate(this.#real)
  #calls = 0

  /** `at`: milliseconds UTC, for all that `work` begins and waits for. Others see no change. */
  async during<T>(at: number, work: () => Promise<T>): Promise<T> {
    this.#begin()
    try {
      return await this.#at.run(at, work)
    } finally {
      this.#end()
    }
  }

  #begin(): void {
    this.#calls += 1
    if (globalThis.Date === this.#shown) return
    if (globalThis.Date !== this.#real) {
      this.#real = globalThis.Date
      this.#shown = this.#shownDate(this.#real)
    }
    globalThis.Date = this.#shown
  }

  #end(): void {
    this.#calls -= 1
    if (this.#calls === 0 && globalThis.Date === this.#shown) globalThis.Date = this.#real
  }

  #shownDate(real: DateConstructor): DateConstructor {
    const now = (): number => this.#at.getStore() ?? real.now()
    return new Proxy(real, {
      construct: (_, given: readonly unknown[], made) =>
        Reflect.construct(real, given.length === 0 ? [now()] : given, made) as Date,
      apply: () => new real(now()).toString(),
      get: (_, name) => (name === 'now' ? now : (Reflect.get(real, name) as unknown)),
    })
  }
}
