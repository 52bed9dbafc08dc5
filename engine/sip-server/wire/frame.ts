/**
 * Framing of the drachtio protocol on a byte stream: `<decimal length>#<payload>`, where the length
 * counts the bytes of the payload in UTF-8. That is how every drachtio-srf writes; before 5.0 it
 * reads by characters, as drachtio-server wrote until 2024.
 */

/** The unit of the length of frames for an application: characters are code points. */
export type FrameLength = 'bytes' | 'characters'

/** Longest payload that an application may send, in bytes. */
export const maxFrameBytes = 256 * 1024

/** A longer run of digits is no length: 99 999 999 bytes are skipped at most. */
const maxLengthDigits = 8

/** So much of a frame that is too long is kept: the id of its command. */
const keptOfTooLong = 256

const hash = 0x23
const zero = 0x30

export interface ReadFrames {
  readonly payloads: readonly string[]
  /** The beginnings of payloads that are longer than `maxFrameBytes`, and were skipped. */
  readonly tooLong: readonly string[]
  /** Set when the stream is broken for good: nothing after this point can be read. */
  readonly problem: string | undefined
}

export function encodeFrame(payload: string, counting: FrameLength = 'bytes'): string {
  const bytes = Buffer.byteLength(payload)
  // It has as many bytes as UTF-16 units: all is ASCII.
  const isCountEqual = counting === 'bytes' || bytes === payload.length
  return `${isCountEqual ? bytes : Array.from(payload).length}#${payload}`
}

/**
 * Takes a stream apart again, however it was cut. A payload that lies in one chunk is decoded where
 * it is; one that does not is gathered in a buffer of exactly its size, so each byte is copied at
 * most once.
 */
export class FrameReader {
  /** Length read so far; digits are still expected while `#gathering` is absent. */
  #length = 0
  #digits = 0
  #gathering: Buffer | undefined
  #gathered = 0
  /** Bytes of a frame that is too long, still to come. */
  #toSkip = 0
  #tooLong: string[] = []
  #problem: string | undefined

  push(chunk: Buffer): ReadFrames {
    const payloads: string[] = []
    this.#tooLong = []
    let at = 0
    while (at < chunk.length && this.#problem === undefined) {
      if (this.#gathering !== undefined) at = this.#gather(this.#gathering, chunk, at, payloads)
      else if (this.#toSkip > 0) at = this.#skip(chunk, at)
      else at = this.#readLength(chunk, at, payloads)
    }
    return { payloads, tooLong: this.#tooLong, problem: this.#problem }
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
      if (this.#digits > maxLengthDigits) return this.#fail('frame is too long', chunk)
    }
    return chunk.length
  }

  #beginPayload(chunk: Buffer, start: number, payloads: string[]): number {
    if (this.#length === 0) return this.#fail('length is missing or zero', chunk)
    if (this.#length > maxFrameBytes) {
      this.#toSkip = this.#length - keptOfTooLong
      this.#length = keptOfTooLong
    }
    const end = start + this.#length
    if (end <= chunk.length) {
      this.#finishFrame(chunk.toString('utf8', start, end), payloads)
      return end
    }
    this.#gathering = Buffer.allocUnsafe(this.#length)
    return start
  }

  #gather(into: Buffer, chunk: Buffer, from: number, payloads: string[]): number {
    const copied = chunk.copy(into, this.#gathered, from)
    this.#gathered += copied
    if (this.#gathered === into.length) {
      this.#finishFrame(into.toString('utf8'), payloads)
    }
    return from + copied
  }

  #skip(chunk: Buffer, from: number): number {
    const skipped = Math.min(this.#toSkip, chunk.length - from)
    this.#toSkip -= skipped
    return from + skipped
  }

  #finishFrame(text: string, payloads: string[]): void {
    if (this.#toSkip > 0) this.#tooLong.push(text)
    else payloads.push(text)
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
