/**
 * `max_calls` of carriers, of AI agents, or of the nodes of dispatcher sets: how many calls each
 * may have at once. Call control counts the live calls.
 */
import type { Schedule } from '../../schema/clock.ts'
import type { Hold, Shares } from '../../schema/contracts/limits.ts'
import { LimitedCounter } from './limited-counter.ts'

/** Present where other instances count against the same limits. */
export interface SharedCounting {
  readonly shares: Shares
  readonly schedule: Schedule
}

export class CallLimit {
  readonly #noun: string
  readonly #activeCalls: (id: number) => number
  readonly #shared: SharedCounting | undefined
  readonly #counters = new Map<number, LimitedCounter>()

  /** @param noun names these limits on all instances, such as `agent`. */
  constructor(
    noun: string,
    activeCalls: (id: number) => number,
    shared: SharedCounting | undefined,
  ) {
    this.#noun = noun
    this.#activeCalls = activeCalls
    this.#shared = shared
  }

  /** Whether no call may begin, as far as this instance knows. */
  isReached(id: number, maxCalls: number): boolean {
    return maxCalls > 0 && this.of(id).isReached(maxCalls)
  }

  /**
   * Whether a call begins; it is counted as a live one in this turn of the event loop. Asking other
   * instances takes a tenth of a second at most.
   */
  admit(id: number, maxCalls: number): boolean | Promise<boolean> {
    if (maxCalls === 0) return true
    const counter = this.of(id)
    if (counter.isReached(maxCalls)) return false
    return counter.admits(maxCalls) || this.#ask(counter, maxCalls)
  }

  async #ask(counter: LimitedCounter, maxCalls: number): Promise<boolean> {
    const hold = await counter.obtain(maxCalls)
    // Only the slot that is held for this call: other calls that wait are not counted yet.
    const isAdmitted = hold?.isGiven !== false && counter.admits(maxCalls, hold)
    this.release(hold, isAdmitted)
    return isAdmitted
  }

  /**
   * Ends the hold of a call. A slot of one that begins is not given to another call before call
   * control has counted it.
   */
  release(hold: Hold | undefined, isAdmitted: boolean): void {
    if (hold === undefined) return
    if (isAdmitted) this.#shared?.schedule(hold.end, 0)
    else hold.end()
  }

  /** Counts calls that were not admitted here: some have been resumed, or the limit is new. */
  note(id: number, maxCalls: number): void {
    if (maxCalls > 0) this.of(id).note(maxCalls)
  }

  /** Forgets those that are gone. */
  keepOnly(ids: ReadonlySet<number>): void {
    for (const id of this.#counters.keys()) if (!ids.has(id)) this.#counters.delete(id)
  }

  of(id: number): LimitedCounter {
    const known = this.#counters.get(id)
    if (known !== undefined) return known
    const used = (): number => this.#activeCalls(id)
    const counter = new LimitedCounter(`${this.#noun} ${id} calls`, used, this.#shared?.shares)
    this.#counters.set(id, counter)
    return counter
  }
}
