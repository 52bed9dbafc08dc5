/** Reads RTP packets (RFC 3550 §5.1), and converts G.711. */

interface RtpPacket {
  readonly payloadType: number
  /** The first packet after a pause. */
  readonly isMarked: boolean
  readonly timestamp: number
  readonly ssrc: number
  readonly payload: Buffer
}

/** Undefined: the packet is not RTP, but RTCP or STUN. */
export function readRtp(bytes: Buffer): RtpPacket | undefined {
  const first = bytes[0] ?? 0
  const second = bytes[1] ?? 0
  if (bytes.length < 12 || first >> 6 !== 2 || isRtcp(second)) return undefined
  let start = 12 + (first & 0x0f) * 4
  if (first & 0x10) {
    if (bytes.length < start + 4) return undefined
    start += 4 + bytes.readUInt16BE(start + 2) * 4
  }
  const padding = first & 0x20 ? (bytes.at(-1) ?? 0) : 0
  const end = bytes.length - padding
  if (start > end) return undefined
  return {
    payloadType: second & 0x7f,
    isMarked: second >= 0x80,
    timestamp: bytes.readUInt32BE(4),
    ssrc: bytes.readUInt32BE(8),
    payload: bytes.subarray(start, end),
  }
}

/** RFC 5761 §4: on one port with RTP. */
const isRtcp = (second: number): boolean => second >= 192 && second <= 223

// ITU-T G.711: one byte is one sample (pure). By static payload type (RFC 3551 §6).

/** Undefined: it is not G.711. */
export const decoderOf = (payloadType: number): Int16Array | undefined =>
  payloadType === 0 ? muLaw : payloadType === 8 ? aLaw : undefined

const muLaw = Int16Array.from({ length: 256 }, (_, byte) => {
  const code = ~byte & 0xff
  const magnitude = ((((code & 0x0f) << 3) + 0x84) << ((code & 0x70) >> 4)) - 0x84
  return code & 0x80 ? -magnitude : magnitude
})

const aLaw = Int16Array.from({ length: 256 }, (_, byte) => {
  const code = byte ^ 0x55
  const segment = (code & 0x70) >> 4
  const low = ((code & 0x0f) << 4) + 8
  const magnitude = segment === 0 ? low : (low + 0x100) << (segment - 1)
  return code & 0x80 ? magnitude : -magnitude
})

/** PCMU or PCMA, by static payload type (RFC 3551 §6). */
export type G711 = 0 | 8

/**
 * The code with the nearest value, by the upper 14 bits of the sample. Louder samples are clipped.
 */
export function encode(payloadType: G711, sample: number): number {
  const bounded = Math.max(-32_768, Math.min(32_767, sample))
  return encoders[payloadType][(bounded + 32_768) >> 2] ?? 0
}

const encoders = { 0: encoderFor(0), 8: encoderFor(8) }

function encoderFor(payloadType: G711): Uint8Array {
  const decoder = decoderOf(payloadType) ?? new Int16Array(256)
  const valueOf = (code: number | undefined): number => decoder[code ?? 0] ?? 0
  const codes = [...decoder.keys()].toSorted((one, other) => valueOf(one) - valueOf(other))
  let at = 0
  return Uint8Array.from({ length: 16_384 }, (_, index) => {
    const sample = index * 4 - 32_768
    const distance = (position: number): number => Math.abs(valueOf(codes[position]) - sample)
    while (at < 255 && distance(at + 1) <= distance(at)) at += 1
    return codes[at] ?? 0
  })
}
