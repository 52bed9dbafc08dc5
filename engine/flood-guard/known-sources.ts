export type IsKnown = (address: string, port: number) => boolean

const LIFE_MS = 1_000

/** Forged sources make an entry each. */
const MAX_SOURCES = 20_000

/**
 * Remembers for a second whether a source is a carrier, a node or trusted: each packet asks, and a
 * busy source sends thousands.
 */
export class KnownSources {
  readonly #isKnown: IsKnown
  /** By address, then by port. */
  readonly #answers = new Map<string, Map<number, boolean>>()
  #size = 0
  #forgetAt = -Infinity

  constructor(isKnown: IsKnown) {
    this.#isKnown = isKnown
  }

  has(address: string, port: number, now: number): boolean {
    if (now >= this.#forgetAt || this.#size >= MAX_SOURCES) this.#forget(now)
    let ports = this.#answers.get(address)
    if (ports === undefined) this.#answers.set(address, (ports = new Map<number, boolean>()))
    let isKnown = ports.get(port)
    if (isKnown === undefined) {
      isKnown = this.#isKnown(address, port)
      ports.set(port, isKnown)
      this.#size += 1
    }
    return isKnown
  }

  #forget(now: number): void {
    this.#answers.clear()
    this.#size = 0
    this.#forgetAt = now + LIFE_MS
  }
}
