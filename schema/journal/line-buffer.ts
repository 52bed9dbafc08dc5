/** Lines of the journal as bytes. */
import { checksum, CHECKSUM_LENGTH, LINE_BREAK } from './journal-file.ts'

/**
 * The bytes of a line with its checksum, so that a torn or damaged one is noticed. `text` has no
 * line break.
 */
export const checked = (text: string): Buffer => new LineBuffer(0).add(text)

/** Lines one behind the other, in memory that is used again. */
export class LineBuffer {
  #bytes: Buffer
  #length = 0

  constructor(size = FIRST_BYTES) {
    this.#bytes = Buffer.allocUnsafeSlow(size)
  }

  get length(): number {
    return this.#length
  }

  /** Until the next change. */
  get bytes(): Buffer {
    return this.#bytes.subarray(0, this.#length)
  }

  /**
   * Adds a line with its checksum, and returns its bytes. Several parts are written one by one:
   * joined they would be copied.
   */
  add(...parts: readonly string[]): Buffer {
    const start = this.#length
    let end = start + CHECKSUM_LENGTH
    for (const part of parts) {
      // A code unit takes three bytes at most.
      this.#makeRoom(end + 3 * part.length + 1)
      end += this.#bytes.write(part, end)
    }
    this.#bytes[end] = LINE_BREAK
    this.#length = end + 1
    const line = this.#bytes.subarray(start, this.#length)
    line.write(checksum(line.subarray(CHECKSUM_LENGTH, -1)), 'latin1')
    return line
  }

  append(lines: Buffer): void {
    this.#makeRoom(this.#length + lines.length)
    this.#length += lines.copy(this.#bytes, this.#length)
  }

  clear(): void {
    this.#length = 0
    if (this.#bytes.length > MOST_BYTES) this.#bytes = Buffer.allocUnsafeSlow(FIRST_BYTES)
  }

  #makeRoom(size: number): void {
    if (size <= this.#bytes.length) return
    const larger = Buffer.allocUnsafeSlow(2 * size)
    this.#bytes.copy(larger)
    this.#bytes = larger
  }
}

const FIRST_BYTES = 64 * 1024

/** More is given back when it is written. */
const MOST_BYTES = 1024 * 1024

/** The text of a complete line, which is the first `length` bytes. */
export const textOf = (line: Buffer, length = line.length): string =>
  line.toString('utf8', CHECKSUM_LENGTH, length - 1)
