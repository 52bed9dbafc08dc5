/** What an RTP packet (RFC 3550 §5.1) says of its audio (pure). */

export interface RtpPacket {
  readonly payloadType: number
  /** The first packet after a pause. */
  readonly isMarked: boolean
  readonly timestamp: number
  readonly ssrc: number
  readonly payload: Buffer
}

/** Undefined: it is none, such as RTCP or STUN. */
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
