/** Calls that are over and whose records are not stored yet, within bounds. */
import type { Call } from '../call-machine/state.ts'

/** While nothing can be stored, so many refused calls wait for it; further ones are counted and have no record. */
const MAX_REFUSED = 1_000

export class UnstoredCalls {
  readonly #ended = new Set<Call>()
  readonly #refused = new Set<Call>()
  #withoutRecord = 0

  ended(call: Call): void {
    this.#ended.add(call)
  }

  /** Whether a call that was refused because nothing can be stored may wait. */
  mayWait(call: Call): boolean {
    if (this.#refused.size < MAX_REFUSED) this.#refused.add(call)
    else this.#withoutRecord += 1
    return this.#refused.has(call)
  }

  forget(call: Call): void {
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
