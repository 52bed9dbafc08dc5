import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  decodeBencode,
  encodeBencode,
  SkippedKeys,
} from '../../../../engine/media/relay/bencode.ts'
import type { NgValue } from '../../../../engine/media/relay/relays.ts'
import '../../../support/property-seed.ts'

const decoded = (text: string): NgValue | undefined => decodeBencode(Buffer.from(text))

const { value } = fc.letrec<{ value: NgValue; dictionary: Record<string, NgValue> }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 6 },
    fc.string({ unit: 'grapheme' }),
    fc.integer(),
    fc.array(tie('value'), { maxLength: 5 }),
    tie('dictionary'),
  ),
  dictionary: fc.dictionary(fc.string(), tie('value'), { maxKeys: 5, noNullPrototype: true }),
}))

test('writes what the specification of BitTorrent shows', () => {
  expect(encodeBencode('spam')).toBe('4:spam')
  expect(encodeBencode(-3)).toBe('i-3e')
  expect(encodeBencode(['spam', 'eggs'])).toBe('l4:spam4:eggse')
  expect(encodeBencode({ cow: 'moo', spam: ['a', 'b'] })).toBe('d3:cow3:moo4:spaml1:a1:bee')
})

test('counts the bytes of a text, not its characters', () => {
  expect(encodeBencode('café')).toBe('5:café')
  expect(decoded('5:café')).toBe('café')
})

test('reads what it has written', () => {
  fc.assert(
    fc.property(value, (written) => {
      expect(decoded(encodeBencode(written))).toEqual(written)
    }),
  )
})

test('reads a value that begins later', () => {
  expect(decodeBencode(Buffer.from('cookie d6:result4:ponge'), 7)).toEqual({ result: 'pong' })
})

test('leaves out the entries that are not wanted, whatever is in them', () => {
  const skipped = new SkippedKeys(['b', 'last', 'lost'])
  fc.assert(
    fc.property(value, (some) => {
      const entries = { a: 1, b: some, last: some, lest: 2, lost: some, lasts: 3, é: 4 }
      const bytes = Buffer.from(encodeBencode([{ ...entries, c: { b: some, d: 5 } }]))
      const left = { a: 1, lest: 2, lasts: 3, é: 4, c: { d: 5 } }
      expect(decodeBencode(bytes, 0, skipped)).toEqual([left])
    }),
  )
})

test('a key never reaches a prototype', () => {
  const read = decoded('d9:__proto__d5:admini1eee')
  expect(Object.getPrototypeOf(read)).toBe(Object.prototype)
  expect(read).toHaveProperty('__proto__', { admin: 1 })
})

test.each([
  ['nothing', ''],
  ['an unknown kind', 'x'],
  ['a text that is cut off', '5:spam'],
  ['a length without a text', '5'],
  ['a length that exceeds all memory', '99999999999999999999999:a'],
  ['a negative length', '-1:a'],
  ['a number without digits', 'ie'],
  ['a number without an end', 'i12'],
  ['a fraction', 'i1.5e'],
  ['a list without an end', 'l4:spam'],
  ['a dictionary without an end', 'd3:cow3:moo'],
  ['a key without a value', 'd3:cowe'],
  ['a key that is no text', 'di1e3:mooe'],
  ['something behind the value', 'i1ei2e'],
  ['lists in lists without bound', 'l'.repeat(60_000)],
  ['dictionaries in dictionaries without bound', 'd1:a'.repeat(15_000)],
])('%s is no value', (_what, text) => {
  expect(decoded(text)).toBeUndefined()
})

test('bytes of any kind are a value or none, and never an exception', () => {
  const bytes = fc.oneof(
    fc.uint8Array({ maxLength: 200 }),
    fc
      .string({
        unit: fc.constantFrom('d', 'l', 'i', 'e', '0', '1', '2', '3', ':', '-', 'a'),
        maxLength: 60,
      })
      .map(Buffer.from),
  )
  fc.assert(
    fc.property(bytes, (some) => {
      const read = decodeBencode(Buffer.from(some))
      if (read !== undefined) expect(decoded(encodeBencode(read))).toEqual(read)
    }),
  )
})
