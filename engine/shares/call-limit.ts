/**
 * `max_calls` of AI agents, or of the nodes of dispatcher sets: how many calls each may have at
 * once. Live calls are counted by call control. Where other nodes count against the same limits,
 * this one has a share of each.
 */
import type { Schedule } from '../../schema/clock.ts'
import type { Share, Shares } from '../../schema/contracts/limits.ts'

/** Where other nodes count, too. */
export interface SharedCounting {
  readonly shares: Shares
  readonly schedule: Schedule
}

export class CallLimit {
  readonly #of: string
  readonly #activeCalls: (id: number) => number
  readonly #shared: SharedCounting | undefined
  readonly #byId = new Map<number, Share>()

  /** @param of names these limits for all nodes, such as `agent`. */
  constructor(of: string, activeCalls: (id: number) => number, shared: SharedCounting | undefined) {
    this.#of = of
    this.#activeCalls = activeCalls
    this.#shared = shared
  }

  /** Whether no call may begin, as far as is known here. `maxCalls` 0: there is no limit. */
  isReached(id: number, maxCalls: number): boolean {
    if (maxCalls === 0) return false
    return this.#activeCalls(id) >= maxCalls || this.#shareOf(id)?.mayAdmit(maxCalls) === false
  }

  /**
   * Whether a call begins; it is counted as a live one in this turn of the event loop. Where other
   * nodes have to be asked, that takes a tenth of a second at most.
   */
  admit(id: number, maxCalls: number): boolean | Promise<boolean> {
    if (this.isReached(id, maxCalls)) return false
    const share = maxCalls === 0 ? undefined : this.#shareOf(id)
    return share === undefined || share.admits(maxCalls) || this.#ask(share, maxCalls)
  }

  async #ask(share: Share, maxCalls: number): Promise<boolean> {
    const hold = await share.obtain(maxCalls)
    // Only what is held for this call: others that wait are not counted yet.
    const isAdmitted = hold.isGiven && share.admits(maxCalls, 1)
    // Until call control has counted the call, its room is not given to another one.
    if (isAdmitted) this.#shared?.schedule(hold.end, 0)
    else hold.end()
    return isAdmitted
  }

  /** Its calls are counted without being asked for: some have been resumed, or the limit is new. */
  note(id: number, maxCalls: number): void {
    if (maxCalls > 0 && this.#activeCalls(id) > 0) this.#shareOf(id)?.noted(maxCalls)
  }

  /** Forgets those that are gone. */
  keepOnly(ids: ReadonlySet<number>): void {
    for (const id of this.#byId.keys()) if (!ids.has(id)) this.#byId.delete(id)
  }

  forget(id: number): void {
    this.#byId.delete(id)
  }

  #shareOf(id: number): Share | undefined {
    const { shares } = this.#shared ?? {}
    if (shares === undefined) return undefined
    const known = this.#byId.get(id)
    if (known) return known
    const share = shares.of(`${this.#of} ${id} calls`, () => this.#activeCalls(id))
    this.#byId.set(id, share)
    return share
  }
}
