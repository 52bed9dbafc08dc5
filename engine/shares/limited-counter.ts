/**
 * One limit, such as the calls that an agent may have at once: how much of it is used here, and
 * this instance's share of it where other instances count against the same limit. A limit of 0 is
 * no limit.
 */
import type { Hold, Share, Shares } from '../../schema/contracts/limits.ts'

/** Why one more is not admitted. */
export type SlotRefusal =
  /** The limit is reached. */
  | 'reached'
  /** Other instances may return a slot for it. */
  | 'ask'
  /** The database did not answer, so the use of other instances is unknown. */
  | 'unreachable'

export class LimitedCounter {
  readonly #resource: string
  readonly #used: () => number
  readonly #shares: Shares | undefined
  #share: Share | undefined

  /**
   * @param resource the name of the limit on all instances, such as `carrier 7 calls`.
   * @param used returns how much of it this instance uses now.
   * @param shares absent: no other instance counts against the limit.
   */
  constructor(resource: string, used: () => number, shares: Shares | undefined) {
    this.#resource = resource
    this.#used = used
    this.#shares = shares
  }

  /** Whether this instance alone uses the whole limit. */
  isReachedHere(limit: number): boolean {
    return limit > 0 && this.#used() >= limit
  }

  /** Whether other instances use the rest of the limit, and returned nothing a moment ago. */
  isReachedElsewhere(limit: number): boolean {
    return this.#shareWithin(limit)?.mayAdmit(limit) === false
  }

  isReached(limit: number): boolean {
    return this.isReachedHere(limit) || this.isReachedElsewhere(limit)
  }

  /**
   * Whether the share has a slot for one more, which the caller counts in this turn of the event
   * loop. The caller has checked `isReachedHere`.
   *
   * @param hold the slot that it already has.
   */
  admits(limit: number, hold?: Hold): boolean {
    const own = hold?.isGiven === true ? 1 : 0
    return this.#shareWithin(limit)?.admits(limit, own) !== false
  }

  /** Why `admits` returned false. `wasAsked`: `obtain` has asked other instances for a slot. */
  refusal(limit: number, wasAsked: boolean): SlotRefusal {
    const share = this.#shareWithin(limit)
    if (share === undefined) return 'reached'
    if (!wasAsked && (share.mayAdmit(limit) || !share.isAnswered)) return 'ask'
    return share.isAnswered ? 'reached' : 'unreachable'
  }

  /**
   * Holds a slot until `end`, and asks other instances where there is none here: it waits a tenth
   * of a second for them at most. Undefined: no slot is needed.
   */
  obtain(limit: number): Promise<Hold> | undefined {
    return this.#shareWithin(limit)?.obtain(limit)
  }

  /** Counts calls that were not admitted here: some have been resumed, or the limit is new. */
  note(limit: number): void {
    if (limit > 0 && this.#used() > 0) this.#shareWithin(limit)?.noted(limit)
  }

  #shareWithin(limit: number): Share | undefined {
    if (limit === 0 || this.#shares === undefined) return undefined
    return (this.#share ??= this.#shares.of(this.#resource, this.#used))
  }
}
