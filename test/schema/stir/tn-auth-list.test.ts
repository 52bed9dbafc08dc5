import fc from 'fast-check'
import { expect, test } from 'vitest'
import { readAll, readSequence } from '../../../schema/stir/der.ts'
import { coversNumber, readTnAuthList } from '../../../schema/stir/tn-auth-list.ts'
import { readRevocationList } from '../../../engine/stir/revocation-list.ts'
import '../../support/property-seed.ts'
import { providerList, rangeList } from '../../support/stir-pki.ts'

const read = (hex: string) => readTnAuthList(Buffer.from(hex, 'hex'))

test('a code of a provider, a range and a number are read', () => {
  expect(read(providerList('709J'))).toEqual({ providers: ['709J'], ranges: [] })
  expect(read(rangeList('12155551210', 10))).toEqual({
    providers: [],
    ranges: [{ first: '12155551210', last: '12155551219' }],
  })
  expect(read('3007a205160331323')).toBeUndefined()
  expect(read('3007a2051603313233')).toEqual({
    providers: [],
    ranges: [{ first: '123', last: '123' }],
  })
})

test('a range covers its numbers alone, and the code of a provider any', () => {
  const range = read(rangeList('12155551210', 10))
  if (range === undefined) throw new Error('the list is not read')
  for (const [number, covers] of [
    ['12155551210', true],
    ['12155551219', true],
    ['12155551209', false],
    ['1215555121', false],
    ['121555512100', false],
  ] as const)
    expect([number, coversNumber(range, number)]).toEqual([number, covers])
  expect(coversNumber({ providers: ['709J'], ranges: [] }, '1')).toBe(true)
})

test.each([
  ['an empty list', '3000'],
  ['nothing', ''],
  ['more behind it', '3007a205160331323300'],
  ['another entry', '3007a305160331323300'],
  ['a count of nothing', '300fa10d300b160331323302040000000000'],
  ['a range over its digits', rangeList('999', 2)],
])('%s is malformed', (_, hex) => {
  expect(read(hex)).toBeUndefined()
})

test('no bytes make the readers throw', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      const buffer = Buffer.from(bytes)
      const inside = Buffer.concat([Buffer.of(0x30, buffer.length & 0x7f), buffer])
      for (const each of [buffer, inside]) {
        readAll(each, 10)
        readSequence(each, 10)
        readTnAuthList(each)
        readRevocationList(each)
      }
    }),
  )
})
