/**
 * Mixes two parties to one stream of G.711. Each has a jitter buffer; then the samples are added.
 */
import { encode, type G711 } from '../recording/audio/rtp.ts'
import { SourceQueue, FRAME } from './source-queue.ts'

/** RFC 3550 §5.1. */
const HEAD_LENGTH = 12

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
