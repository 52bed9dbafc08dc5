/** The calls that one customer may have at once, and begin in a second. */
import { noHold, type Hold, type Shares } from '../../../schema/contracts/limits.ts'
import { LimitedCounter } from '../../shares/limited-counter.ts'
import { RollingSecond } from '../../shares/rolling-second.ts'

/** Whether the limits of a customer let one more call begin. */
export type LimitVerdict =
  | 'room'
  /** Other instances may have a slot for it. */
  | 'ask'
  /** The database did not answer, so the use of other instances is unknown. */
  | 'unreachable'
  | 'concurrent_limit'
  | 'cps_limit'

/** The instances whose calls count against the limits of a customer. */
export type Counting =
  /** All of them. */
  | 'all'
  /** All of them; while the database does not answer, this one alone. */
  | 'answered'
  /** This one. */
  | 'alone'

/** The slots that other instances were asked for, for one more call. */
export interface HeldSlots {
  /** Its start counts already. */
  readonly isCounted: boolean
  readonly calls: Hold
  readonly starts: Hold
}

/** The customer whose limits these are. */
interface Owner {
  readonly terms: {
    readonly customerId: number
    readonly maxConcurrentCalls: number
    readonly maxCps: number
  }
  readonly openCalls: number
}

/** Present where other instances count against the same limits. */
export interface SharedLimits {
  readonly limits?: Shares | undefined
  /** Milliseconds by the steady clock. */
  readonly now: () => number
}

export class CustomerLimits {
  readonly #owner: Owner
  readonly #shared: SharedLimits | undefined
  readonly #startTimes = new RollingSecond()
  #callCounter: LimitedCounter | undefined
  #startCounter: LimitedCounter | undefined

  constructor(owner: Owner, shared: SharedLimits | undefined) {
    this.#owner = owner
    this.#shared = shared
  }

  /**
   * Counts the start of a new call if the call may begin.
   *
   * @param held the slots, after other instances have been asked. Only without it the answer may be
   *   `ask`.
   */
  admit(now: number, held?: HeldSlots, counting: Counting = 'all'): LimitVerdict {
    const { maxConcurrentCalls, maxCps } = this.#owner.terms
    if (this.#isFull) return 'concurrent_limit'
    const isStart = maxCps > 0 && held?.isCounted !== true
    if (isStart && this.#startTimes.count(now) >= maxCps) return 'cps_limit'
    if (counting !== 'alone') {
      const isKnown = counting === 'all'
      const calls = this.#calls
      if (calls?.admits(maxConcurrentCalls, held?.calls) === false) {
        const refusal = calls.refusal(maxConcurrentCalls, held !== undefined)
        if (refusal === 'reached') return 'concurrent_limit'
        if (refusal === 'ask' || isKnown) return refusal
      }
      const starts = isStart ? this.#starts : undefined
      if (starts?.admits(maxCps, held?.starts) === false) {
        const refusal = starts.refusal(maxCps, held !== undefined)
        if (refusal === 'reached') return 'cps_limit'
        if (refusal === 'ask' || isKnown) return refusal
      }
    }
    if (isStart) this.#startTimes.add(now)
    return 'room'
  }

  /** Returns what `admit` would return in the end; nothing is counted. */
  foresee(now: number): LimitVerdict {
    const { maxConcurrentCalls, maxCps } = this.#owner.terms
    if (this.#isFull || this.#calls?.isReachedElsewhere(maxConcurrentCalls) === true)
      return 'concurrent_limit'
    if (maxCps > 0 && this.#startTimes.count(now) >= maxCps) return 'cps_limit'
    return this.#starts?.isReachedElsewhere(maxCps) === true ? 'cps_limit' : 'room'
  }

  /**
   * Holds slots for one call, and asks other instances where there are none here; waits a tenth of
   * a second at most.
   *
   * @param isCounted its start counts already.
   */
  async obtain(isCounted: boolean): Promise<HeldSlots> {
    const { maxConcurrentCalls, maxCps } = this.#owner.terms
    const [calls = noHold, starts = noHold] = await Promise.all([
      this.#calls?.obtain(maxConcurrentCalls),
      isCounted ? undefined : this.#starts?.obtain(maxCps),
    ])
    return { isCounted, calls, starts }
  }

  /** Counts calls that were not admitted here: some have been resumed, or the limit is new. */
  note(): void {
    this.#calls?.note(this.#owner.terms.maxConcurrentCalls)
  }

  get #isFull(): boolean {
    const { terms, openCalls } = this.#owner
    return terms.maxConcurrentCalls > 0 && openCalls >= terms.maxConcurrentCalls
  }

  /** Undefined: only the calls here count, or there is no limit. */
  get #calls(): LimitedCounter | undefined {
    const { limits } = this.#shared ?? {}
    const { customerId, maxConcurrentCalls } = this.#owner.terms
    if (limits === undefined || maxConcurrentCalls === 0) return undefined
    return (this.#callCounter ??= new LimitedCounter(
      `customer ${customerId} calls`,
      () => this.#owner.openCalls,
      limits,
    ))
  }

  /** Undefined: only the starts here count, or there is no limit. */
  get #starts(): LimitedCounter | undefined {
    const { limits, now } = this.#shared ?? {}
    const { customerId, maxCps } = this.#owner.terms
    if (limits === undefined || now === undefined || maxCps === 0) return undefined
    return (this.#startCounter ??= new LimitedCounter(
      `customer ${customerId} starts`,
      () => this.#startTimes.count(now()),
      limits,
    ))
  }
}
