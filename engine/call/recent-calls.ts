/** Calls that ended in the last minutes; older ones are in the database. */
import type { CallRecord } from '../../schema/contracts/call-record.ts'
import { MAX_NOTES, type Note } from './call-machine/state.ts'
import type { CallParties } from './call-parties.ts'

export interface RecentCall {
  readonly record: CallRecord
  /** Call-IDs, the caller's first. */
  readonly legs: readonly string[]
  readonly notes: readonly Note[]
  /** Added to the time of a note it gives milliseconds UTC. */
  readonly stampOffsetMs: number
  readonly parties: CallParties
}

const RECENT_MS = 15 * 60_000

const endOf = ({ record, stampOffsetMs }: RecentCall): number => record.endedAt - stampOffsetMs

export class RecentCalls {
  readonly #now: () => number
  readonly #maxCalls: number
  /** The calls by uuid. */
  readonly #calls = new Map<string, RecentCall>()
  /**
   * In the order in which they ended, a ring. To find its first entry a `Map` passes over all that
   * were deleted.
   */
  readonly #order: string[] = []
  #first = 0
  #next = 0

  /** Holds at most `maxCalls`, 3 kB each. */
  constructor(now: () => number, maxCalls = 2_000) {
    this.#now = now
    this.#maxCalls = Math.ceil(maxCalls)
  }

  add(call: RecentCall): void {
    if (this.size === this.#maxCalls) this.#forgetFirst()
    const { callUuid } = call.record
    this.#calls.set(callUuid, call)
    this.#order[this.#next++ % this.#maxCalls] = callUuid
    const oldest = this.#now() - RECENT_MS
    for (let first = this.#oldest; first && endOf(first) < oldest; first = this.#oldest)
      this.#forgetFirst()
  }

  get #oldest(): RecentCall | undefined {
    return this.#calls.get(this.#order[this.#first % this.#maxCalls] ?? '')
  }

  #forgetFirst(): void {
    this.#calls.delete(this.#order[this.#first++ % this.#maxCalls] ?? '')
  }

  find(callUuid: string): RecentCall | undefined {
    return this.#calls.get(callUuid)
  }

  /** Scans all calls. */
  withLeg(callId: string): RecentCall | undefined {
    for (const call of this.#calls.values()) if (call.legs.includes(callId)) return call
    return undefined
  }

  /** Adds what came late to its trace. */
  note(callUuid: string, note: Note): void {
    const call = this.#calls.get(callUuid)
    if (call === undefined || call.notes.length >= MAX_NOTES) return
    this.#calls.set(callUuid, { ...call, notes: [...call.notes, note] })
  }

  get size(): number {
    return this.#calls.size
  }
}
