import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  byteLength,
  decodeMessage,
  encodeMessage,
  hasEscapedBytes,
} from '../../../../engine/sip-server/message/message.ts'

test('any bytes survive the way to text and back', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
      const text = decodeMessage(Buffer.from(bytes))
      expect(encodeMessage(text)).toEqual(Buffer.from(bytes))
      expect(byteLength(text)).toBe(bytes.length)
    }),
  )
})

test.each([
  ['a lone lead byte', [0x61, 0xc3], 'a\udcc3'],
  ['an overlong slash', [0xc0, 0xaf], '\udcc0\udcaf'],
  ['an encoded surrogate', [0xed, 0xb2, 0x80], '\udced\udcb2\udc80'],
  ['valid text around a wrong byte', [0xc3, 0xa9, 0xff, 0xc3, 0xa9], 'é\udcffé'],
  ['a sequence cut by the end', [0xf0, 0x9f, 0x99], '\udcf0\udc9f\udc99'],
  ['beyond Unicode', [0xf5, 0x80, 0x80, 0x80], '\udcf5\udc80\udc80\udc80'],
])('%s keeps its bytes one by one', (_, bytes, text) => {
  expect(decodeMessage(Buffer.from(bytes))).toBe(text)
  expect(hasEscapedBytes(text)).toBe(true)
})
