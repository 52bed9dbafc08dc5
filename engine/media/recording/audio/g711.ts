/** ITU-T G.711: one byte is one sample (pure). By static payload type (RFC 3551 §6). */

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
