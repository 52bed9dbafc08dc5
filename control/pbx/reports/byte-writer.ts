/** Gathers texts as UTF-8 in one block of memory that is used again for the next piece. */

const FIRST_BYTES = 1_048_576
/** UTF-8 of a string takes at most this many bytes per character. */
const WIDEST = 3

export class ByteWriter {
  #block = Buffer.allocUnsafeSlow(FIRST_BYTES)
  #length = 0

  add(text: string): void {
    const needed = this.#length + text.length * WIDEST
    if (needed > this.#block.length) this.#grow(needed)
    this.#length += this.#block.write(text, this.#length)
  }

  /** What has been added since the last time, as a block of its own. */
  take(): Uint8Array<ArrayBuffer> {
    const taken = new Uint8Array(this.#length)
    taken.set(this.#block.subarray(0, this.#length))
    this.#length = 0
    return taken
  }

  #grow(bytes: number): void {
    const larger = Buffer.allocUnsafeSlow(Math.max(bytes, 2 * this.#block.length))
    larger.set(this.#block.subarray(0, this.#length))
    this.#block = larger
  }
}
