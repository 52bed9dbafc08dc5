/** ITU-T G.711: samples of 16 bits become codes (pure). */
import { decoderOf } from '../recording/audio/g711.ts'

/** PCMU or PCMA, by static payload type (RFC 3551 §6). */
export type G711 = 0 | 8

/** The code whose value is nearest, by the sample's upper 14 bits. What is too loud is as loud as possible. */
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
