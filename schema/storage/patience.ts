/** Commits fail now and then; two seconds of it are a problem. */
import type { Storage } from './storage.ts'

/** How often it is looked. Milliseconds. */
export const LOOK_MS = 250
const PATIENT_LOOKS = 8

export class Patience {
  readonly #storage: Storage
  #episode: number | undefined
  #looks = 0

  constructor(storage: Storage) {
    this.#storage = storage
  }

  /** Call it every `LOOK_MS`. */
  look(): void {
    const { episode } = this.#storage
    if (episode === undefined || episode !== this.#episode) this.#looks = 0
    this.#episode = episode
    if (episode === undefined) return
    this.#looks += 1
    if (this.#looks > PATIENT_LOOKS) this.#storage.declare()
  }
}
