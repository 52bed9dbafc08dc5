import type { Storage } from './storage.ts'

/** Interval of the checks. Milliseconds. */
export const POLL_MS = 500

const POLLS_UNTIL_DECLARED = 4

/** Declares a problem after two seconds of failures. */
export class FailureTimer {
  readonly #storage: Storage
  #episode: number | undefined
  #polls = 0

  constructor(storage: Storage) {
    this.#storage = storage
  }

  /** Call it every `POLL_MS`. */
  poll(): void {
    const { episode } = this.#storage
    if (episode === undefined || episode !== this.#episode) this.#polls = 0
    this.#episode = episode
    if (episode === undefined || this.#storage.isLockedHere) return
    this.#polls += 1
    if (this.#polls > POLLS_UNTIL_DECLARED) this.#storage.declare()
  }
}
