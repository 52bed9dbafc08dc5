import fc from 'fast-check'
import { generateKeyPairSync, sign, verify } from 'node:crypto'
import { expect, test } from 'vitest'
import { derSignature, rawSignature } from '../../../schema/stir/signature-form.ts'
import '../../support/property-seed.ts'

test('what is converted by us is what Node converts, there and back', () => {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' })
  for (let round = 0; round < 300; round += 1) {
    const data = Buffer.from(`a text ${round}`)
    const der = sign('sha256', data, privateKey)
    const raw = rawSignature(der)
    const asNode = { key: publicKey, dsaEncoding: 'ieee-p1363' } as const
    expect(verify('sha256', data, asNode, raw)).toBe(true)
    expect(derSignature(raw)).toEqual(der)
  }
})

test('any two numbers keep their values', () => {
  const numbers = fc.uint8Array({ minLength: 64, maxLength: 64 })
  const small = fc.tuple(fc.integer({ min: 0, max: 31 }), fc.integer({ min: 0, max: 31 }))
  fc.assert(
    fc.property(numbers, small, (bytes, [first, second]) => {
      const raw = Buffer.from(bytes)
        .fill(0, 0, first)
        .fill(0, 32, 32 + second)
      const der = derSignature(raw)
      if (der === undefined) throw new Error('the signature is not converted')
      expect(rawSignature(der)).toEqual(raw)
    }),
  )
})

test.each([0, 63, 65])('%i bytes are no signature', (length) => {
  expect(derSignature(Buffer.alloc(length))).toBeUndefined()
})
