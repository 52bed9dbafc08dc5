/** Totals of ended calls since the start, by the names under which telemetry shows them. */
import type { Quality } from '../schema/contracts/charging.ts'
import type { CallRecord } from '../schema/contracts/call-record.ts'
import { worstOf } from '../schema/records/stored-record.ts'
import type { DelayHistogram, MosHistogram } from '../schema/contracts/engine.ts'
import type { CallQuality, Disposition } from '../schema/contracts/field-values.ts'

/** A node in the next rack answers within the first, a mobile network abroad within the last. */
const boundsMs = [25, 50, 100, 250, 500, 1_000, 2_000, 3_000, 5_000, 8_000, 15_000, 30_000]

/** Bounds for the worse direction: below 3 most people complain, G.711 reaches 4.4. */
const mosBounds = [1.5, 2, 2.5, 3, 3.5, 3.8, 4, 4.2, 4.5]

export class CallTotals {
  readonly #dispositions: Record<Disposition, number> = {
    ANSWERED: 0,
    'NO ANSWER': 0,
    BUSY: 0,
    CANCELED: 0,
    FAILED: 0,
    CONGESTION: 0,
  }
  readonly #delays = Array.from({ length: boundsMs.length + 1 }, () => 0)
  #delaySumMs = 0
  #calls = 0
  #billsec = 0
  readonly #mos = { counts: mosBounds.map(() => 0), sum: 0, calls: 0 }

  /** Counts a call that has ended; its quality, once that is known. */
  add({ disposition, billsec, postDialDelayMs }: CallRecord, quality?: Quality): void {
    this.#calls += 1
    this.#billsec += billsec
    this.#dispositions[disposition] += 1
    if (postDialDelayMs !== null) this.#addDelay(postDialDelayMs)
    void quality?.then((known) => this.addQuality(known))
  }

  /** Calls that have ended. */
  get calls(): number {
    return this.#calls
  }

  snapshot(): Readonly<Record<string, number>> {
    const byDisposition = Object.entries(this.#dispositions).map(
      ([name, count]) => [`calls_${name.toLowerCase().replace(' ', '_')}_total`, count] as const,
    )
    return {
      calls_total: this.#calls,
      billed_seconds_total: this.#billsec,
      ...Object.fromEntries(byDisposition),
    }
  }

  postDialDelay(): DelayHistogram {
    return { boundsMs, counts: [...this.#delays], sumMs: this.#delaySumMs }
  }

  addQuality(quality: CallQuality | undefined): void {
    const { mos_score: mos } = worstOf(quality)
    if (mos === null) return
    this.#mos.calls += 1
    this.#mos.sum += mos
    mosBounds.forEach((bound, index) => {
      if (mos <= bound) this.#mos.counts[index] = (this.#mos.counts[index] ?? 0) + 1
    })
  }

  mos(): MosHistogram {
    const { counts, sum, calls } = this.#mos
    return {
      buckets: mosBounds.map((le, index) => ({ le, count: counts[index] ?? 0 })),
      sum,
      calls,
    }
  }

  #addDelay(delayMs: number): void {
    const bucket = boundsMs.findIndex((bound) => delayMs <= bound)
    const index = bucket === -1 ? boundsMs.length : bucket
    this.#delays[index] = (this.#delays[index] ?? 0) + 1
    this.#delaySumMs += delayMs
  }
}
