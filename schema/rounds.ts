/**
 * Work at intervals that shares its wake-ups: however many parts of the process look for something,
 * one timer wakes it (`npm run bench -- idle`).
 */
import type { Cancel, Clocks, Every, Schedule } from './clock.ts'

/** An interval is longer than asked by at most this, once. */
export const ROUND_MS = 250

interface Chore {
  readonly intervalMs: number
  readonly work: () => void
  /** Steady time. */
  dueAt: number
}

export interface RoundsDeps extends Pick<Clocks, 'steadyNow'> {
  readonly schedule: Schedule
}

export class Rounds {
  readonly #deps: RoundsDeps
  readonly #chores = new Set<Chore>()
  /** When the last round was due; while there are chores. */
  #roundAt = 0
  #cancel: Cancel = () => undefined

  constructor(deps: RoundsDeps) {
    this.#deps = deps
  }

  /** The first time is up to a round earlier than the interval, so that all share their rounds. */
  readonly every: Every = (intervalMs, work) => {
    if (this.#chores.size === 0) this.#begin()
    const chore = { intervalMs, work, dueAt: this.#roundAt + intervalMs }
    this.#chores.add(chore)
    return () => {
      if (this.#chores.delete(chore) && this.#chores.size === 0) this.#cancel()
    }
  }

  #begin(): void {
    this.#roundAt = this.#deps.steadyNow()
    this.#arm()
  }

  /** Rounds that a standing process has missed are not made up for. */
  #arm(): void {
    const { steadyNow, schedule } = this.#deps
    const now = steadyNow()
    const missed = Math.max(0, Math.floor((now - this.#roundAt) / ROUND_MS))
    this.#roundAt += missed * ROUND_MS
    this.#cancel = schedule(() => this.#run(), this.#roundAt + ROUND_MS - now)
  }

  #run(): void {
    this.#roundAt += ROUND_MS
    this.#arm()
    const at = this.#roundAt
    for (const chore of this.#chores) {
      if (chore.dueAt > at) continue
      const nextAt = chore.dueAt + chore.intervalMs
      chore.dueAt = nextAt > at ? nextAt : at + chore.intervalMs
      chore.work()
    }
  }
}
