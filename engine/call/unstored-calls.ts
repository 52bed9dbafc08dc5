/** Ended calls whose records are not stored yet. */
import type { Unserved } from '../../schema/contracts/calls.ts'
import type { LiveCall } from './call-machine/state.ts'

/** While nothing can be stored, this many refused calls wait. Further ones are only counted. */
const MAX_REFUSED = 1_000

const unserved: ReadonlySet<string> = new Set<Unserved>(['storage_unavailable', 'node_fenced'])

export class UnstoredCalls {
  /** Uuids: a `Set` of calls would keep ended ones for a while (`ReleasingMap`). */
  readonly #ended = new Set<string>()
  readonly #refused = new Set<string>()
  #withoutRecord = 0

  ended({ start }: LiveCall): void {
    this.#ended.add(start.callUuid)
  }

  /**
   * Whether a call may wait for its record to be stored: of the calls refused because nothing can
   * be stored, only some.
   */
  mayWait({ start }: LiveCall, denialCode: string | null): boolean {
    if (denialCode === null || !unserved.has(denialCode)) return true
    const { callUuid } = start
    if (this.#refused.size < MAX_REFUSED) this.#refused.add(callUuid)
    else this.#withoutRecord += 1
    return this.#refused.has(callUuid)
  }

  forget({ start }: LiveCall): void {
    this.#ended.delete(start.callUuid)
    this.#refused.delete(start.callUuid)
  }

  get size(): number {
    return this.#ended.size
  }

  /** Calls that were refused and could not be recorded, since the start. */
  get withoutRecord(): number {
    return this.#withoutRecord
  }
}
