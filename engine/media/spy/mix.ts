/**
 * Mixes two parties to one stream of G.711. Each has a jitter buffer; then the samples are added.
 */
import { decoderOf, encode, type G711, readRtp } from '../recording/audio/rtp.ts'

/** 20 ms. */
const FRAME = 160
/** A source that has paused is played again when its buffer has this length. */
const BEGIN_AT = 2 * FRAME
/** A frame is dropped from a longer buffer, so that the listener is not late. */
const SHORTEN_AT = 6 * FRAME
const CAPACITY = 12 * FRAME

/** RFC 3550 §5.1. */
const HEAD_LENGTH = 12

class SourceQueue {
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

export class Mix {
  readonly #sources: readonly [SourceQueue, SourceQueue] = [new SourceQueue(), new SourceQueue()]
  readonly #ssrc: number
  #sequence = 0
  #timestamp = 0

  constructor(ssrc: number) {
    this.#ssrc = ssrc
  }

  push(source: 0 | 1, packet: Buffer): void {
    this.#sources[source].push(packet)
  }

  /** The next 20 ms, as an RTP packet. */
  next(payloadType: G711): Buffer {
    const frame = new Int32Array(FRAME)
    for (const source of this.#sources) source.addTo(frame)
    const packet = Buffer.alloc(HEAD_LENGTH + FRAME)
    packet.writeUInt8(0x80, 0)
    packet.writeUInt8(payloadType, 1)
    packet.writeUInt16BE(this.#sequence, 2)
    packet.writeUInt32BE(this.#timestamp, 4)
    packet.writeUInt32BE(this.#ssrc, 8)
    this.#sequence = (this.#sequence + 1) & 0xffff
    this.#timestamp = (this.#timestamp + FRAME) >>> 0
    frame.forEach((sample, at) => packet.writeUInt8(encode(payloadType, sample), HEAD_LENGTH + at))
    return packet
  }
}
