/** Calls that are over and whose records are not stored yet, within bounds. */
import type { LiveCall } from '../call-machine/live.ts'

/** While nothing can be stored, so many refused calls wait for it; further ones are counted and have no record. */
const MAX_REFUSED = 1_000

export class UnstoredCalls {
  readonly #ended = new Set<LiveCall>()
  readonly #refused = new Set<LiveCall>()
  #withoutRecord = 0

  ended(call: LiveCall): void {
    this.#ended.add(call)
  }

  /** Whether a call that was refused because nothing can be stored may wait. */
  mayWait(call: LiveCall): boolean {
    if (this.#refused.size < MAX_REFUSED) this.#refused.add(call)
    else this.#withoutRecord += 1
    return this.#refused.has(call)
  }

  forget(call: LiveCall): void {
    this.#ended.delete(call)
    this.#refused.delete(call)
  }

  get size(): number {
    return this.#ended.size
  }

  /** Calls that were refused and could not be recorded, since the start. */
  get withoutRecord(): number {
    return this.#withoutRecord
  }
}
