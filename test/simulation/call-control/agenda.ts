/**
 * Virtual time: what is to happen, in its order; what is due at the same time happens in the order
 * of its entry.
 */

interface Entry {
  readonly at: number
  /** Undefined: cancelled. */
  run: (() => void) | undefined
}

export class Agenda {
  now = 0
  readonly #entries: Entry[] = []

  at(time: number, run: () => void): Entry {
    const entry = { at: Math.max(time, this.now), run }
    let index = this.#entries.length
    // Sorted from the last to the first, so that the next one is taken from the end.
    while (index > 0 && (this.#entries[index - 1]?.at ?? 0) <= entry.at) index -= 1
    this.#entries.splice(index, 0, entry)
    return entry
  }

  cancel(entry: Entry | undefined): void {
    if (entry) entry.run = undefined
  }

  /** Runs everything until nothing is left, or the time is up. */
  runUntil(time: number): void {
    for (let next = this.#entries.at(-1); next && next.at <= time; next = this.#entries.at(-1)) {
      this.#entries.pop()
      this.now = next.at
      next.run?.()
    }
    if (time < Infinity) this.now = time
  }
}
