/** The time of a call that is tested: hooks that are asked about it see it as `new Date()`. */
import { AsyncLocalStorage } from 'node:async_hooks'

export class CallTime {
  readonly #at = new AsyncLocalStorage<number>()
  readonly #real = globalThis.Date
  readonly #shown = this.#shownDate()

  /** `at`: milliseconds UTC, for all that `work` begins and waits for. */
  during<T>(at: number, work: () => T): T {
    globalThis.Date = this.#shown
    return this.#at.run(at, work)
  }

  /** Another kit, or a test, may have put its own `Date` in the place of ours. */
  end(): void {
    if (globalThis.Date === this.#shown) globalThis.Date = this.#real
  }

  #shownDate(): DateConstructor {
    const at = this.#at
    const now = (): number => at.getStore() ?? this.#real.now()
    return new Proxy(this.#real, {
      construct: (real, given: readonly unknown[], made) =>
        Reflect.construct(real, given.length === 0 ? [now()] : given, made) as Date,
      apply: (real) => new real(now()).toString(),
      get: (real, name) => (name === 'now' ? now : (Reflect.get(real, name) as unknown)),
    })
  }
}
