/**
 * Framing of the drachtio protocol on a byte stream: `<decimal length>#<payload>`, where the length
 * counts the bytes of the payload in UTF-8.
 */

/** Longest payload that an application may send, in bytes. */
export const maxFrameBytes = 256 * 1024

/** Enough for `maxFrameBytes`; a longer run of digits is refused before it is read to its end. */
const maxLengthDigits = 6

const hash = 0x23
const zero = 0x30

export interface Unframed {
  readonly payloads: readonly string[]
  /** Set when the stream is broken for good: nothing after this point can be read. */
  readonly problem: string | undefined
}

export const encodeFrame = (payload: string): string => `${Buffer.byteLength(payload)}#${payload}`

/**
 * Takes a stream apart again, however it was cut. A payload that lies in one chunk is decoded where
 * it is; one that does not is gathered in a buffer of exactly its size, so each byte is copied at most once.
 */
export class FrameReader {
  /** Length read so far; digits are still expected while `#gathering` is absent. */
  #length = 0
  #digits = 0
  #gathering: Buffer | undefined
  #gathered = 0
  #problem: string | undefined

  push(chunk: Buffer): Unframed {
    const payloads: string[] = []
    let at = 0
    while (at < chunk.length && this.#problem === undefined) {
      if (this.#gathering === undefined) at = this.#readLength(chunk, at, payloads)
      else at = this.#gather(this.#gathering, chunk, at, payloads)
    }
    return { payloads, problem: this.#problem }
  }

  /** Reads digits up to `#`, then takes the payload out of the chunk if it is all there. */
  #readLength(chunk: Buffer, from: number, payloads: string[]): number {
    for (let at = from; at < chunk.length; at++) {
      const byte = chunk[at] ?? 0
      if (byte === hash) return this.#beginPayload(chunk, at + 1, payloads)
      const digit = byte - zero
      if (digit < 0 || digit > 9) return this.#fail('length is not a number', chunk)
      this.#length = this.#length * 10 + digit
      this.#digits++
      if (this.#digits > maxLengthDigits || this.#length > maxFrameBytes)
        return this.#fail('frame is too long', chunk)
    }
    return chunk.length
  }

  #beginPayload(chunk: Buffer, start: number, payloads: string[]): number {
    if (this.#length === 0) return this.#fail('length is missing or zero', chunk)
    const end = start + this.#length
    if (end <= chunk.length) {
      payloads.push(chunk.toString('utf8', start, end))
      this.#beginFrame()
      return end
    }
    this.#gathering = Buffer.allocUnsafe(this.#length)
    return start
  }

  #gather(into: Buffer, chunk: Buffer, from: number, payloads: string[]): number {
    const copied = chunk.copy(into, this.#gathered, from)
    this.#gathered += copied
    if (this.#gathered === into.length) {
      payloads.push(into.toString('utf8'))
      this.#beginFrame()
    }
    return from + copied
  }

  #beginFrame(): void {
    this.#length = 0
    this.#digits = 0
    this.#gathering = undefined
    this.#gathered = 0
  }

  #fail(problem: string, chunk: Buffer): number {
    this.#problem = problem
    return chunk.length
  }
}
