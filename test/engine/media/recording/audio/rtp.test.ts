import { expect, test } from 'vitest'
import { readRtp, decoderOf } from '../../../../../engine/media/recording/audio/rtp.ts'
import '../../../../support/property-seed.ts'

const packet = (hex: string) => readRtp(Buffer.from(hex.replaceAll(' ', ''), 'hex'))

test('the header says codec, time and sender; sources, extension and padding are no audio', () => {
  const plain = packet('8088 0001 00000010 0000aaaa d5d5')
  expect(plain).toMatchObject({ payloadType: 8, isMarked: true, timestamp: 16, ssrc: 0xaaaa })
  expect(plain?.payload.toString('hex')).toBe('d5d5')
  const full = packet('b100 0001 00000010 0000aaaa 00000001 bede0001 10ff0000 d5d5 0002')
  expect(full?.payload.toString('hex')).toBe('d5d5')
})

test('what is no RTP, or cut off, is none', () => {
  for (const hex of [
    '',
    '8008',
    '4008 0001 00000010 0000aaaa',
    '80c8 0006 0000aaaa 00000000 00000000',
    '8f08 0001 00000010 0000aaaa',
    '9008 0001 00000010 0000aaaa bede',
    'a008 0001 00000010 0000aaaa d5ff',
  ])
    expect(packet(hex)).toBeUndefined()
})

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
