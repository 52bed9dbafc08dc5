import { expect, test } from 'vitest'
import { decoderOf } from '../../../../../engine/media/recording/audio/rtp.ts'

test('silence, the loudest samples and the first steps are those of ITU-T G.711', () => {
  const [muLaw, aLaw] = [decoderOf(0), decoderOf(8)]
  const decoded = (table: Int16Array | undefined, bytes: readonly number[]) =>
    bytes.map((byte) => table?.[byte])
  expect(decoded(muLaw, [0xff, 0x7f, 0x80, 0x00, 0xfe])).toEqual([0, 0, 32_124, -32_124, 8])
  expect(decoded(aLaw, [0xd5, 0x55, 0xaa, 0x2a, 0xd4])).toEqual([8, -8, 32_256, -32_256, 24])
})

test('other codecs, digits and comfort noise are not decoded', () => {
  for (const payloadType of [9, 13, 101, 111]) expect(decoderOf(payloadType)).toBeUndefined()
})
