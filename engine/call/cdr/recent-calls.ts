/** Calls that ended in the last minutes; older ones are in the database. */
import type { CallRecord } from '../../../schema/call-record.ts'
import type { CallParties } from '../call-parties.ts'
import type { Note } from '../call-machine/state.ts'

export interface EndedCall {
  readonly record: CallRecord
  /** Call-IDs, the caller's first. */
  readonly legs: readonly string[]
  readonly notes: readonly Note[]
  /** Of its notes against the times of its record. */
  readonly stampOffsetMs: number
  readonly parties: CallParties
}

/** With those of a call that has many transfers. */
const MAX_NOTES = 100
const KEPT_MS = 15 * 60_000

export class RecentCalls {
  readonly #now: () => number
  readonly #maxCalls: number
  /** In the order in which they ended. */
  readonly #calls = new Map<string, EndedCall>()

  /** At most `maxCalls` are kept, 3 kB each. */
  constructor(now: () => number, maxCalls = 2_000) {
    this.#now = now
    this.#maxCalls = maxCalls
  }

  add(call: EndedCall): void {
    this.#calls.set(call.record.callUuid, call)
    const oldest = this.#now() - KEPT_MS
    for (const [callUuid, { record, stampOffsetMs }] of this.#calls) {
      if (this.#calls.size <= this.#maxCalls && record.endedAt - stampOffsetMs >= oldest) break
      this.#calls.delete(callUuid)
    }
  }

  find(callUuid: string): EndedCall | undefined {
    return this.#calls.get(callUuid)
  }

  /** Looks at every call. */
  withLeg(callId: string): EndedCall | undefined {
    for (const call of this.#calls.values()) if (call.legs.includes(callId)) return call
    return undefined
  }

  hasLeg(callId: string): boolean {
    return this.withLeg(callId) !== undefined
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
