import fc from 'fast-check'
import { expect, test } from 'vitest'
import { byteRange } from '../../../control/calls/recording-routes.ts'
import '../../support/property-seed.ts'

const part = (start: number, end: number) => ({ kind: 'part', start, end })

test.each([
  [undefined, { kind: 'whole' }],
  ['bytes=0-', part(0, 99)],
  ['bytes=10-19', part(10, 19)],
  ['bytes=90-1000', part(90, 99)],
  ['Bytes= 99-99', part(99, 99)],
  ['bytes=-10', part(90, 99)],
  ['bytes=-1000', part(0, 99)],
  ['bytes=100-', { kind: 'unsatisfiable' }],
  ['bytes=-0', { kind: 'unsatisfiable' }],
  ['bytes=20-10', { kind: 'whole' }],
  ['bytes=-', { kind: 'whole' }],
  ['bytes=0-1,5-6', { kind: 'whole' }],
  ['seconds=0-1', { kind: 'whole' }],
  ['bytes=a-b', { kind: 'whole' }],
])('of 100 bytes, %s asks for %o', (header, expected) => {
  expect(byteRange(header, 100)).toEqual(expected)
})

test('a part is always within the whole', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 5_000 }), fc.nat(9_999), fc.nat(9_999), (size, a, b) => {
      for (const header of [`bytes=${a}-${b}`, `bytes=-${a}`, `bytes=${a}-`]) {
        const range = byteRange(header, size)
        if (range.kind !== 'part') continue
        expect(range.start).toBeLessThanOrEqual(range.end)
        expect(range.end).toBeLessThan(size)
      }
    }),
  )
})
