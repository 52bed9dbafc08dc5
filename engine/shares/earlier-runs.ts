/**
 * Rows that earlier processes of this instance have left. Calls that go on count in this process
 * now, so the rows are freed, but not before the shares that these calls use are stored.
 */
import type { InstanceShare } from './instance-share.ts'

/** The shares that are to be stored before the rows are freed. */
type Unstored = Set<InstanceShare>

export class EarlierRuns {
  /** No other process of this instance goes on. */
  isOver = false
  /** Undefined: there are no rows to free. */
  #unstored: Unstored | undefined

  /** @param unstored the shares that are to be stored first. */
  end(unstored: Iterable<InstanceShare>): void {
    this.isOver = true
    this.#unstored = new Set(unstored)
  }

  /** A request of a process that has ended may be stored late: the rows are freed again. */
  lookAgain(): void {
    if (this.isOver) this.#unstored ??= new Set()
  }

  get unstored(): Unstored | undefined {
    return this.#unstored
  }

  stored(unstored: Unstored | undefined, shares: readonly InstanceShare[]): void {
    for (const share of shares) unstored?.delete(share)
  }

  failed(shares: readonly InstanceShare[]): void {
    for (const share of shares) this.#unstored?.add(share)
  }

  /** The share is not used any more, so nothing will store it. */
  forget(share: InstanceShare): void {
    this.#unstored?.delete(share)
  }

  /** Whether all of them are stored, and none was added by another `end`. */
  isDue(unstored: Unstored | undefined): boolean {
    return unstored?.size === 0 && this.#unstored === unstored
  }

  freed(unstored: Unstored | undefined): void {
    if (this.#unstored === unstored) this.#unstored = undefined
  }
}
