/** Time as a number: timers run in order when a test advances it, promises settle in between. */
import type { Cancel } from '../../../schema/clock.ts'

interface Timer {
  readonly at: number
  readonly order: number
  readonly action: () => void
}

export class VirtualClock {
  #now = 0
  #order = 0
  readonly #timers = new Set<Timer>()

  readonly now = (): number => this.#now

  readonly schedule = (action: () => void, delayMs: number): Cancel => {
    this.#order += 1
    const timer = { at: this.#now + delayMs, order: this.#order, action }
    this.#timers.add(timer)
    return () => void this.#timers.delete(timer)
  }

  get pending(): number {
    return this.#timers.size
  }

  async advance(ms: number): Promise<void> {
    await this.advanceTo(this.#now + ms)
  }

  async advanceTo(time: number): Promise<void> {
    await settle()
    for (let timer = this.#next(time); timer; timer = this.#next(time)) {
      this.#now = Math.max(this.#now, timer.at)
      this.#timers.delete(timer)
      timer.action()
      await settle()
    }
    this.#now = time
  }

  /** The process stands still: time passes, no timer runs until the next `advance`. */
  stall(ms: number): void {
    this.#now += ms
  }

  #next(until: number): Timer | undefined {
    let first: Timer | undefined
    for (const timer of this.#timers)
      if (timer.at <= until && (!first || isBefore(timer, first))) first = timer
    return first
  }
}

const isBefore = (one: Timer, other: Timer) =>
  one.at < other.at || (one.at === other.at && one.order < other.order)

async function settle(): Promise<void> {
  for (let turn = 0; turn < 6; turn += 1) await Promise.resolve()
}
