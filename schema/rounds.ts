/**
 * Work at intervals that shares its wake-ups: however many parts of the process look for something,
 * one timer wakes it, and only for rounds in which something is due (`npm run bench -- idle`).
 */
import type { Cancel, Clocks, Every, Schedule } from './clock.ts'

export const ROUND_MS = 250

/**
 * Chores with this interval or a longer one are due in every second round only: two wake-ups a
 * second do for all of them. The first interval is shorter than asked by less than this.
 */
const LONG_ROUND_MS = 500

interface Chore {
  readonly intervalMs: number
  readonly work: () => void
  /** Steady time; for an interval of whole rounds the moment of one. */
  dueAt: number
}

export interface RoundsDeps extends Pick<Clocks, 'steadyNow'> {
  readonly schedule: Schedule
}

export class Rounds {
  readonly #deps: RoundsDeps
  readonly #chores = new Set<Chore>()
  /** The moment of one round, from which all others are counted. */
  #origin = 0
  /** The round for which the timer is set; Infinity: no timer. */
  #armedFor = Infinity
  #cancel: Cancel = () => undefined

  constructor(deps: RoundsDeps) {
    this.#deps = deps
  }

  readonly every: Every = (intervalMs, work) => {
    const now = this.#deps.steadyNow()
    if (this.#chores.size === 0) this.#origin = now
    const sharedMs = intervalMs < LONG_ROUND_MS ? ROUND_MS : LONG_ROUND_MS
    const begunAt = now - ((now - this.#origin) % sharedMs)
    const chore = { intervalMs, work, dueAt: begunAt + intervalMs }
    this.#chores.add(chore)
    this.#arm()
    return () => {
      if (this.#chores.delete(chore) && this.#chores.size === 0) this.#disarm()
    }
  }

  /** Sets the timer for the next round in which something is due, unless it is set for that. */
  #arm(): void {
    let dueAt = Infinity
    for (const chore of this.#chores) dueAt = Math.min(dueAt, chore.dueAt)
    const roundAt = this.#origin + Math.ceil((dueAt - this.#origin) / ROUND_MS) * ROUND_MS
    if (roundAt === this.#armedFor) return
    this.#disarm()
    if (roundAt === Infinity) return
    this.#armedFor = roundAt
    const { steadyNow, schedule } = this.#deps
    this.#cancel = schedule(() => this.#run(), Math.max(0, roundAt - steadyNow()))
  }

  #disarm(): void {
    this.#cancel()
    this.#armedFor = Infinity
  }

  /** A standing process does once what it has missed, and goes on in the same rounds. */
  #run(): void {
    const now = this.#deps.steadyNow()
    const at = Math.max(this.#armedFor, now - ((now - this.#origin) % ROUND_MS))
    this.#armedFor = Infinity
    const due = [...this.#chores].filter(({ dueAt }) => dueAt <= at)
    for (const chore of due) {
      const missed = Math.floor((at - chore.dueAt) / chore.intervalMs)
      chore.dueAt += (missed + 1) * chore.intervalMs
    }
    this.#arm()
    for (const chore of due) if (this.#chores.has(chore)) chore.work()
  }
}
