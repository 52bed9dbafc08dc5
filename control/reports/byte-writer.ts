/** Encodes texts as UTF-8 in one reused block of memory. */

const FIRST_BYTES = 1_048_576
/** Maximum UTF-8 bytes per character of a string. */
const WIDEST = 3

export class ByteWriter {
  #block = Buffer.allocUnsafeSlow(FIRST_BYTES)
  #length = 0

  add(text: string): void {
    const needed = this.#length + text.length * WIDEST
    if (needed > this.#block.length) this.#grow(needed)
    this.#length += this.#block.write(text, this.#length)
  }

  /** Returns the bytes added since the last call, as a block of their own. */
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
