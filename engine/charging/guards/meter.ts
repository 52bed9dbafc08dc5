/**
 * What this process may grant within a cap, in one period of it. The database has what all processes have taken of the
 * cap; a part of it lies here: held for calls, spent by calls, or free. Nothing is granted that was not taken before.
 */
import type { SpendGuard } from '../../../schema/contracts/limits.ts'

export class Meter {
  guard: SpendGuard
  /** Milliseconds UTC. */
  readonly periodStart: number
  /** Taken, and neither held nor spent. Negative: calls were promised more before the guard was set. */
  #freeMicros = 0
  /** What all processes have taken, as the database said last. */
  #takenMicros = 0
  /** What this process has taken of it and not given back: no less was taken in all. */
  #ownMicros = 0
  /** Of live calls. */
  #heldMicros = 0
  /** What calls were granted since the last look. */
  #demandMicros = 0
  #aheadMicros = 0
  /** The cap is used up: until then the database is not asked again. */
  quietUntil = -Infinity
  /** The guard is not in force any more, as the database has said: what is missing is not asked for. */
  isOver = false
  /** Something is free, or missing. */
  readonly #onChange: () => void

  constructor(guard: SpendGuard, periodStart: number, onChange: () => void) {
    this.guard = guard
    this.periodStart = periodStart
    this.#onChange = onChange
  }

  get ownMicros(): number {
    return this.#ownMicros
  }

  get freeMicros(): number {
    return this.#freeMicros
  }

  /** What is left of the cap for calls of this process, as far as it knows. */
  get leftMicros(): number {
    return Math.max(0, this.guard.amountMicros - this.#takenMicros) + this.#freeMicros
  }

  /** No call of this process counts on it. */
  get isIdle(): boolean {
    return this.#freeMicros === 0 && this.#heldMicros === 0
  }

  get isMissing(): boolean {
    return this.#freeMicros < 0 && !this.isOver
  }

  hold(micros: number): void {
    this.#freeMicros -= micros
    this.#heldMicros += micros
    this.#demandMicros += micros
    if (this.#freeMicros < 0) this.#onChange()
  }

  /** It is not spent. */
  release(micros: number): void {
    this.#freeMicros += micros
    this.#heldMicros -= micros
    if (micros > 0) this.#onChange()
  }

  /** A call has ended: what it still holds is spent. */
  spent(micros: number): void {
    this.#heldMicros -= micros
  }

  /** The database has given so much; it is all taken from here on. */
  taken(givenMicros: number, takenMicros: number): void {
    this.#freeMicros += givenMicros
    this.#ownMicros += givenMicros
    this.#takenMicros = takenMicros
    if (this.#freeMicros > 0) this.#onChange()
  }

  /** As the database says. */
  noteTaken(takenMicros: number): void {
    this.#takenMicros = takenMicros
  }

  /** What calls have asked for lately: so much more is taken with the next request. */
  get aheadMicros(): number {
    return this.#aheadMicros
  }

  /** What is to be given back: it is not granted any more from here on. */
  giveBack(isAll: boolean): number {
    this.#aheadMicros = isAll ? 0 : this.#demandMicros
    this.#demandMicros = 0
    const surplus = this.#freeMicros - this.#aheadMicros
    if (surplus <= 0) return 0
    this.#freeMicros -= surplus
    this.#ownMicros -= surplus
    this.#takenMicros -= surplus
    this.quietUntil = -Infinity
    return surplus
  }
}

/** The part of what a call may cost that counts on a meter: from one amount of it to another. */
export interface Counted {
  readonly meter: Meter
  readonly fromMicros: number
  toMicros: number
}

/** The least that is free on any of them. */
export function freeOn(meters: readonly Meter[]): number {
  let least = Infinity
  for (const { freeMicros } of meters) least = Math.min(least, freeMicros)
  return least
}

/** The call may cost more, or less than before. More counts on `meters`; what is not used returns to where it was taken. */
export function recount(
  counted: Counted[],
  meters: readonly Meter[],
  beforeMicros: number,
  afterMicros: number,
): void {
  if (afterMicros >= beforeMicros) {
    for (const meter of meters) {
      const last = counted.findLast((item) => item.meter === meter)
      if (last?.toMicros === beforeMicros) last.toMicros = afterMicros
      else counted.push({ meter, fromMicros: beforeMicros, toMicros: afterMicros })
      meter.hold(afterMicros - beforeMicros)
    }
    return
  }
  for (const item of counted) {
    const unused = Math.min(item.toMicros, beforeMicros) - Math.max(item.fromMicros, afterMicros)
    if (unused <= 0) continue
    item.toMicros -= unused
    item.meter.release(unused)
  }
}
