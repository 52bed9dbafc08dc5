/** Real timers of one instance: they end with it, as those of a process that is killed. */
import type { Schedule } from '../../schema/clock.ts'

export class EndingTimers {
  readonly #timers = new Set<NodeJS.Timeout>()
  #isEnded = false

  get isEnded(): boolean {
    return this.#isEnded
  }

  readonly schedule: Schedule = (work, delayMs) => {
    if (this.#isEnded) return () => undefined
    const timer = setTimeout(() => {
      this.#timers.delete(timer)
      work()
    }, delayMs)
    this.#timers.add(timer)
    return () => {
      clearTimeout(timer)
      this.#timers.delete(timer)
    }
  }

  /** Nothing is called any more. */
  end(): void {
    this.#isEnded = true
    for (const timer of this.#timers) clearTimeout(timer)
  }
}
