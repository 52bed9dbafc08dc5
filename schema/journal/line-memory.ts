/**
 * Memory for the lines of open calls, outside the heap, that is used again. As strings, or as
 * buffers of their own, they would be half of what lives as long as a call: V8 copies that twice,
 * and marks it all the more often (D130).
 */

/** A line at the start of `slot`. */
export interface StoredLine {
  readonly slot: Buffer
  /** 0: there is none. */
  readonly length: number
}

/** The size of a slot is a multiple of this. */
const STEP_BYTES = 512

/** Longer lines have memory of their own. */
const LARGEST_BYTES = 4_096

/** Slots that are allocated together. */
const SLOTS = 64

/** Memory for the largest number of calls at a time stays with the process. */
export class LineMemory {
  /** Free slots, by their size in steps. */
  readonly #free: readonly Buffer[][] = Array.from(
    { length: LARGEST_BYTES / STEP_BYTES + 1 },
    () => [],
  )

  /** Copies a line. */
  keep(line: Buffer): StoredLine {
    const { length } = line
    const slot = length > LARGEST_BYTES ? Buffer.allocUnsafeSlow(length) : this.#take(length)
    line.copy(slot)
    return { slot, length }
  }

  /** Nothing may read it any more. */
  release({ slot }: StoredLine): void {
    if (slot.length > 0 && slot.length <= LARGEST_BYTES)
      this.#free[slot.length / STEP_BYTES]?.push(slot)
  }

  #take(length: number): Buffer {
    const steps = Math.max(1, Math.ceil(length / STEP_BYTES))
    const free = this.#free[steps] ?? []
    if (free.length === 0) {
      const size = steps * STEP_BYTES
      const slab = Buffer.allocUnsafeSlow(SLOTS * size)
      for (let at = 0; at < slab.length; at += size) free.push(slab.subarray(at, at + size))
    }
    return free.pop() ?? Buffer.allocUnsafeSlow(steps * STEP_BYTES)
  }
}
