import { decoderOf, readRtp } from '../recording/audio/rtp.ts'

/** The samples of 20 ms. */
export const FRAME = 160

/** A source that has paused is played again when its buffer has this length. */
const BEGIN_AT = 2 * FRAME

/** A frame is dropped from a longer buffer, so that the listener is not late. */
const SHORTEN_AT = 6 * FRAME

const CAPACITY = 12 * FRAME

/** The jitter buffer of one party: packets come in, samples go out at their pace. */
export class SourceQueue {
  readonly #samples = new Int16Array(CAPACITY)
  #first = 0
  #length = 0
  #isPlaying = false
  #ssrc = -1
  #timestamp = 0

  push(packet: Buffer): void {
    const payload = this.#next(packet)
    if (payload === undefined) return
    for (const sample of payload) {
      this.#samples[(this.#first + this.#length) % CAPACITY] = sample
      if (this.#length < CAPACITY) this.#length += 1
      else this.#first = (this.#first + 1) % CAPACITY
    }
  }

  addTo(frame: Int32Array): void {
    if (!this.#isPlaying && this.#length < BEGIN_AT) return
    if (this.#length > SHORTEN_AT) this.#drop(FRAME)
    const count = Math.min(FRAME, this.#length)
    for (let at = 0; at < count; at++)
      frame[at] = (frame[at] ?? 0) + (this.#samples[(this.#first + at) % CAPACITY] ?? 0)
    this.#drop(count)
    this.#isPlaying = this.#length > 0
  }

  #drop(count: number): void {
    this.#first = (this.#first + count) % CAPACITY
    this.#length -= count
  }

  /** The samples of a packet. Undefined: it is not G.711, or is repeated or late. */
  #next(packet: Buffer): Int16Array | undefined {
    const rtp = readRtp(packet)
    const decoder = rtp && decoderOf(rtp.payloadType)
    if (rtp === undefined || decoder === undefined) return undefined
    const ahead = (rtp.timestamp - this.#timestamp) >>> 0
    if (rtp.ssrc === this.#ssrc && (ahead === 0 || ahead >= 2 ** 31)) return undefined
    this.#ssrc = rtp.ssrc
    this.#timestamp = rtp.timestamp
    return Int16Array.from(rtp.payload, (code) => decoder[code] ?? 0)
  }
}
