/** Counts of a carrier's calls over a sliding window: a ring of buckets, so the memory is fixed. */
import type { QualityFigures } from '../../schema/contracts/route-quality.ts'

/** The window slides in steps of a thirtieth of it. */
const BUCKETS = 30

/** The counts of a bucket stand beside each other. */
const ATTEMPTS = 0
const ANSWERED = 1
const ENDED = 2
const TALK_MS = 3
const DELAYED = 4
const DELAY_MS = 5
const COUNTS = 6

export class QualityWindow {
  readonly #stepMs: number
  /** Made with the first call: most routes of a large platform have none. */
  #counts = new Float64Array(0)
  /** The newest step of the ring. */
  #step: number

  constructor(windowSeconds: number, now: number) {
    this.#stepMs = (windowSeconds * 1_000) / BUCKETS
    this.#step = Math.floor(now / this.#stepMs)
  }

  /** `delayMs` null: nothing has rung. */
  addAttempt(now: number, isAnswered: boolean, delayMs: number | null): void {
    const at = this.#bucketAt(now)
    this.#add(at + ATTEMPTS, 1)
    if (isAnswered) this.#add(at + ANSWERED, 1)
    if (delayMs === null) return
    this.#add(at + DELAYED, 1)
    this.#add(at + DELAY_MS, Math.max(0, delayMs))
  }

  addTalk(now: number, talkMs: number): void {
    const at = this.#bucketAt(now)
    this.#add(at + ENDED, 1)
    this.#add(at + TALK_MS, Math.max(0, talkMs))
  }

  clear(): void {
    this.#counts.fill(0)
  }

  figures(now: number): QualityFigures & { readonly delayed: number } {
    this.#bucketAt(now)
    const attempts = this.#sum(ATTEMPTS)
    const answered = this.#sum(ANSWERED)
    const ended = this.#sum(ENDED)
    const delayed = this.#sum(DELAYED)
    return {
      attempts,
      answered,
      ended,
      delayed,
      asr: attempts === 0 ? null : (100 * answered) / attempts,
      acdSeconds: ended === 0 ? null : this.#sum(TALK_MS) / ended / 1_000,
      pddMs: delayed === 0 ? null : this.#sum(DELAY_MS) / delayed,
    }
  }

  /** The index of the bucket of this moment; those that are too old are empty then. */
  #bucketAt(now: number): number {
    const step = Math.floor(now / this.#stepMs)
    const passed = Math.min(step - this.#step, BUCKETS)
    for (let back = 0; back < passed; back += 1) {
      const at = ((step - back) % BUCKETS) * COUNTS
      this.#counts.fill(0, at, at + COUNTS)
    }
    if (passed > 0) this.#step = step
    return (this.#step % BUCKETS) * COUNTS
  }

  #add(index: number, amount: number): void {
    if (this.#counts.length === 0) this.#counts = new Float64Array(BUCKETS * COUNTS)
    this.#counts[index] = (this.#counts[index] ?? 0) + amount
  }

  #sum(count: number): number {
    let sum = 0
    for (let index = count; index < this.#counts.length; index += COUNTS)
      sum += this.#counts[index] ?? 0
    return sum
  }
}
