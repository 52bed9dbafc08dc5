/** The calls of Call-IDs: of live legs, and of those that ended a moment ago. */
import type { LiveCall } from './call-machine/state.ts'

/** Messages of a call may come so long after its end (64·T1, RFC 3261 §17). */
const LATE_MS = 32_000

const none: readonly string[] = []

export class CallsByLeg {
  readonly #now: () => number
  readonly #keepsEnded: boolean
  /** A call that comes back to this server may have the Call-ID of the first. */
  readonly #live = new Map<string, readonly string[]>()
  /** Legs that ended since `#since`, and in the period before. */
  #ended = new Map<string, string>()
  #endedBefore = new Map<string, string>()
  #since = 0

  constructor(now: () => number, keepsEnded: boolean) {
    this.#now = now
    this.#keepsEnded = keepsEnded
  }

  add(callId: string, callUuid: string): void {
    const uuids = this.uuidsOf(callId)
    if (!uuids.includes(callUuid)) this.#live.set(callId, [...uuids, callUuid])
  }

  /** Uuids of the calls that have a live leg with this Call-ID. */
  uuidsOf(callId: string): readonly string[] {
    return this.#live.get(callId) ?? none
  }

  /** A leg that another call gets by a transfer stays with its first call, which ends with it. */
  uuidOf(callId: string): string | undefined {
    return this.uuidsOf(callId)[0] ?? this.#ended.get(callId) ?? this.#endedBefore.get(callId)
  }

  ended({ start, callIds }: LiveCall): void {
    if (this.#now() - this.#since > LATE_MS) {
      this.#endedBefore = this.#ended
      this.#ended = new Map()
      this.#since = this.#now()
    }
    for (const callId of callIds) {
      const uuids = this.uuidsOf(callId)
      if (!uuids.includes(start.callUuid)) continue
      const left = uuids.filter((uuid) => uuid !== start.callUuid)
      if (left.length > 0) this.#live.set(callId, left)
      else this.#live.delete(callId)
      if (this.#keepsEnded && left.length === 0) this.#ended.set(callId, start.callUuid)
    }
  }
}
