/**
 * The amount that this process may grant within a cap, in one period of it: its share, a part of
 * which is held for calls, spent by calls, or free. Nothing is granted that was not taken before.
 */
import {
  capResource,
  noHold,
  type Hold,
  type SpendingCap,
} from '../../../schema/contracts/limits.ts'
import type { InstanceShare } from '../../shares/instance-share.ts'
import type { InstanceShares } from '../../shares/instance-shares.ts'

export class Meter {
  guard: SpendingCap
  /** Milliseconds UTC. */
  readonly periodStart: number
  readonly share: InstanceShare
  /** Held and spent by calls of this process. */
  #usedMicros = 0
  /** The part held for live calls. */
  #heldMicros = 0

  constructor(guard: SpendingCap, periodStart: number, shares: InstanceShares) {
    this.guard = guard
    this.periodStart = periodStart
    this.share = shares.of(capResource(guard.capUuid, periodStart), () => this.#usedMicros)
    this.share.follow(guard.amountMicros)
  }

  /** An operator may have changed it. */
  follow(guard: SpendingCap): void {
    this.guard = guard
    this.share.follow(guard.amountMicros)
  }

  /** Counts what the last run spent, or calls before the guard was removed and set again. */
  spentBefore(micros: number): void {
    this.#usedMicros += micros
  }

  /** Negative: calls were promised more before the guard was set. */
  get freeMicros(): number {
    return this.share.free
  }

  /** The rest of the cap for calls of this process, as far as it knows. */
  get leftMicros(): number {
    return Math.max(0, this.guard.amountMicros - this.share.elsewhere - this.#usedMicros)
  }

  /** No call of this process counts on it. */
  get isIdle(): boolean {
    return this.#heldMicros === 0
  }

  /** A used-up cap answers at once. */
  obtain(micros: number): Promise<Hold> {
    const isInVain = this.share.isQuiet && this.freeMicros < micros
    return isInVain ? Promise.resolve(noHold) : this.share.obtainAmount(micros)
  }

  hold(micros: number): void {
    this.#usedMicros += micros
    this.#heldMicros += micros
    if (this.freeMicros < 0) this.share.noted(this.guard.amountMicros)
  }

  /** It is not spent. */
  release(micros: number): void {
    this.#usedMicros -= micros
    this.#heldMicros -= micros
  }

  /** A call has ended: what it still holds is spent. */
  spent(micros: number): void {
    this.#heldMicros -= micros
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

/**
 * The call may cost more, or less than before. More counts on `meters`; what is not used returns to
 * where it was taken.
 */
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
