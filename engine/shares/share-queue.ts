/**
 * Keeps the state of each share between this instance and the database (`shareTable`), and the
 * order in which shares are stored.
 */
import type { InstanceShare } from './instance-share.ts'
import { type ShareEvent, type ShareState, shareTable } from './share-tables.ts'

type QueuedState = Exclude<ShareState, 'stored'>

export class ShareQueue {
  /** The shares are in the order of their last step. One that is absent is `stored`. */
  readonly #states = new Map<InstanceShare, ShareState>()
  readonly #sizes: Record<QueuedState, number> = { wanted: 0, asked: 0, askedAgain: 0, locked: 0 }

  step(share: InstanceShare, event: ShareEvent): void {
    const from = this.stateOf(share)
    const step = shareTable[from][event]
    if (step === undefined) return
    if (step.to !== from) this.#move(share, from, step.to)
    for (const action of step.do) share[action]()
  }

  stepAll(shares: Iterable<InstanceShare>, event: ShareEvent): void {
    for (const share of shares) this.step(share, event)
  }

  /** The share is not used any more. */
  forget(share: InstanceShare): void {
    this.#move(share, this.stateOf(share), 'stored')
  }

  stateOf(share: InstanceShare): ShareState {
    return this.#states.get(share) ?? 'stored'
  }

  /** Returns at most `atMost` shares in this state, those that came first. */
  in(state: QueuedState, atMost = Infinity): readonly InstanceShare[] {
    const found: InstanceShare[] = []
    if (this.#sizes[state] === 0) return found
    for (const [share, its] of this.#states) {
      if (found.length === atMost) break
      if (its === state) found.push(share)
    }
    return found
  }

  size(state: QueuedState): number {
    return this.#sizes[state]
  }

  /** All shares that are not `stored`. */
  all(): readonly InstanceShare[] {
    return [...this.#states.keys()]
  }

  /** Whether statements are to follow, at once or when a row is locked no more. */
  get isWorkLeft(): boolean {
    return this.#states.size > 0
  }

  /** Whether a statement is to follow that no lock holds up. */
  get isAnyWanted(): boolean {
    return this.#sizes.wanted + this.#sizes.askedAgain > 0
  }

  #move(share: InstanceShare, from: ShareState, to: ShareState): void {
    this.#states.delete(share)
    if (from !== 'stored') this.#sizes[from] -= 1
    if (to === 'stored') return
    this.#sizes[to] += 1
    this.#states.set(share, to)
  }
}
