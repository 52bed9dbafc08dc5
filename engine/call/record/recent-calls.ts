/** The last calls that ended, as long as they are worth a look; older ones are in the database. */
import type { CallRecord } from '../../../schema/call-record.ts'

/** 1.5 kB each. */
const MAX_CALLS = 2_000
const KEPT_MS = 15 * 60_000

export class RecentCalls {
  readonly #now: () => number
  /** In the order in which they ended. */
  readonly #records = new Map<string, CallRecord>()

  /** `now` in milliseconds UTC. */
  constructor(now: () => number) {
    this.#now = now
  }

  add(record: CallRecord): void {
    this.#records.set(record.callUuid, record)
    const oldest = this.#now() - KEPT_MS
    for (const [callUuid, { endedAt }] of this.#records) {
      if (this.#records.size <= MAX_CALLS && endedAt >= oldest) break
      this.#records.delete(callUuid)
    }
  }

  find(callUuid: string): CallRecord | undefined {
    return this.#records.get(callUuid)
  }

  get size(): number {
    return this.#records.size
  }
}
