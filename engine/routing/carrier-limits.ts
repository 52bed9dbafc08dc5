/**
 * `max_calls` and `max_cps` of carriers. Live calls are counted by call control; starts are
 * remembered for one second.
 */
import type { CarrierRecord } from './routing-records.ts'

const WINDOW_MS = 1_000

export class CarrierLimits {
  readonly #activeCalls: (carrierId: number) => number
  readonly #now: () => number
  /** Times of the starts in the last second, oldest first. */
  readonly #starts = new Map<number, number[]>()

  constructor(activeCalls: (carrierId: number) => number, now: () => number) {
    this.#activeCalls = activeCalls
    this.#now = now
  }

  isReached({ carrierId, maxCalls, maxCps }: CarrierRecord): boolean {
    if (maxCalls > 0 && this.#activeCalls(carrierId) >= maxCalls) return true
    return maxCps > 0 && this.#recentStarts(carrierId).length >= maxCps
  }

  /** A call to or from the carrier starts now. */
  noteStart({ carrierId, maxCps }: CarrierRecord): void {
    if (maxCps === 0) return
    this.#starts.set(carrierId, [...this.#recentStarts(carrierId), this.#now()])
  }

  /** Forgets carriers that are gone. */
  keepOnly(carrierIds: ReadonlySet<number>): void {
    for (const carrierId of this.#starts.keys())
      if (!carrierIds.has(carrierId)) this.#starts.delete(carrierId)
  }

  #recentStarts(carrierId: number): readonly number[] {
    const since = this.#now() - WINDOW_MS
    return (this.#starts.get(carrierId) ?? []).filter((startedAt) => startedAt > since)
  }
}
