/**
 * Which sources are carriers, nodes or trusted, asked once a second for each: every packet of theirs is asked about,
 * and a busy one sends thousands.
 */
export type IsKnown = (address: string, port: number) => boolean

const LIFE_MS = 1_000
/** Forged sources make an entry each. */
const MAX_SOURCES = 20_000

export class KnownSources {
  readonly #isKnown: IsKnown
  /** By address, then by port. */
  readonly #asked = new Map<string, Map<number, boolean>>()
  #size = 0
  #forgetAt = -Infinity

  constructor(isKnown: IsKnown) {
    this.#isKnown = isKnown
  }

  has(address: string, port: number, now: number): boolean {
    if (now >= this.#forgetAt || this.#size >= MAX_SOURCES) this.#forget(now)
    let ports = this.#asked.get(address)
    if (ports === undefined) this.#asked.set(address, (ports = new Map<number, boolean>()))
    let isKnown = ports.get(port)
    if (isKnown === undefined) {
      isKnown = this.#isKnown(address, port)
      ports.set(port, isKnown)
      this.#size += 1
    }
    return isKnown
  }

  #forget(now: number): void {
    this.#asked.clear()
    this.#size = 0
    this.#forgetAt = now + LIFE_MS
  }
}
