import fc from 'fast-check'
import { expect, test } from 'vitest'
import { coversNumber, normalPrefix, readUserPart } from '../../../schema/rules/numbers.ts'

test.each([
  ['1900', '1900'],
  ['+1900', '1900'],
  ['+001900', '1900'],
  ['+1 900', '1900'],
  ['0900', '0900'],
  ['00 900', '900'],
  ['*31#', '*31#'],
  ['', ''],
])('the prefix %j is stored as %j', (given, stored) => {
  expect(normalPrefix(given)).toBe(stored)
})

test.each([
  '1 (900)',
  '447-449',
  '44.79',
  '0',
  '00',
  '+',
  '+0',
  'abc',
  '19x',
  '++1',
  '１９',
  '1'.repeat(21),
  '1;x=y',
])('%j is no prefix', (given) => {
  expect(normalPrefix(given)).toBeUndefined()
})

const spellings = [
  '+0019001234567',
  '+1 (900) 1234567',
  '+19001234567;ext=5',
  '1%209001234567',
  '01119001234567',
  '81019001234567',
  '*31#01119001234567',
  '8 10 1900 1234567',
  '001119001234567',
  '*6719001234567',
  '*31#*6719001234567',
]

test.each(spellings)('the guard on 1900 covers %s', (dialled) => {
  const { kind, text } = readUserPart(dialled)
  expect(kind).toBe('number')
  expect(coversNumber('1900', text)).toBe(true)
  expect(coversNumber('1901', text)).toBe(false)
  expect(coversNumber('', text)).toBe(true)
})

test('the guard on the national prefix 0900 covers that prefix behind any zeros, and no other', () => {
  for (const dialled of ['0900123', '00900123', '000900123', '+0900123'])
    expect([dialled, coversNumber('0900', dialled)]).toEqual([dialled, true])
  for (const dialled of ['900123', '+900123', '1900123', '1230900', '09123'])
    expect([dialled, coversNumber('0900', dialled)]).toEqual([dialled, false])
})

const digits = (minLength: number, maxLength: number) =>
  fc.stringMatching(new RegExp(`^[1-9][0-9]{${minLength - 1},${maxLength - 1}}$`))
const front = fc.constantFrom('', '+', '0', '00', '000', '+00', '*31#', '#31#00', '*67', '*31#0')
const separator = fc.constantFrom('', ' ', '-', '.', '(', ')')

test('no spelling of a number gets around a guard on its prefix, and none is covered by another prefix', () => {
  fc.assert(
    fc.property(
      digits(1, 8),
      digits(1, 8),
      front,
      fc.array(separator, { minLength: 16, maxLength: 16 }),
      digits(3, 6),
      (prefix, rest, before, between, other) => {
        const number = prefix + rest
        const spelt = Array.from(number, (digit, at) => digit + (between[at] ?? '')).join('')
        const { kind, text } = readUserPart(before + spelt)
        expect(kind).toBe('number')
        expect(coversNumber(prefix, text)).toBe(true)
        expect(coversNumber(normalPrefix(`+${prefix}`) ?? '-', text)).toBe(true)
        if (!before.includes('*6') && !before.includes('#'))
          expect(coversNumber(other, text, ['00'])).toBe(number.startsWith(other))
      },
    ),
  )
})

test('an installation that names its exit codes is braked by no others', () => {
  expect(coversNumber('44', '0114496000')).toBe(true)
  expect(coversNumber('44', '0114496000', ['00'])).toBe(false)
  expect(coversNumber('44', '004496000', ['00'])).toBe(true)
  expect(coversNumber('44', '00244960001', ['0024', '00'])).toBe(false)
  expect(coversNumber('96', '00244960001', ['00244', '00'])).toBe(true)
  // A prefix that was stored before it named them covers the same numbers.
  expect(coversNumber('01144', '+4420', ['011'])).toBe(true)
  expect(coversNumber('01144', '+4320', ['011'])).toBe(false)
})

test.each([
  ['01144', '44'],
  ['+011 44', '44'],
  ['0044', '44'],
  ['0900', '0900'],
  ['+0900', '900'],
  ['011', undefined],
  ['00', undefined],
])('with exit codes the prefix %j is stored as %j', (given, stored) => {
  expect(normalPrefix(given, ['011', '00'])).toBe(stored)
})
