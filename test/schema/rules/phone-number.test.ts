import fc from 'fast-check'
import { expect, test } from 'vitest'
import { numberOrText, readNumber, readUserPart } from '../../../schema/rules/numbers.ts'
import { escapedSpellings, spellings, telephoneNumber } from '../../support/number-spellings.ts'

test('a number in the normal form stays as it is: a leading plus, digits, * and #', () => {
  for (const number of ['19005551234', '+19005551234', '100', '*97', '#31#100', '+*1', '0'])
    expect(readNumber(number)).toEqual({ kind: 'number', text: number })
})

test.each([
  ['1%20976', '1976'],
  ['%2b1900', '+1900'],
  ['1%2D9%2e0%280%29', '1900'],
  ['1900;npdi;rn=+15550100', '1900'],
])('the user part %s is %s: escapes are resolved, parameters left out', (user, number) => {
  expect(readUserPart(user)).toEqual({ kind: 'number', text: number })
})

const malformed = ['++1900', '1+900', '1900+', '', '+', '-.() ', '１９００', '1900\u0661', '19\t00']
const malformedToo = ['1900\0', '19\u00a000', '1900,5', '1'.repeat(65), `1${'-'.repeat(128)}`]

test.each([...malformed, ...malformedToo])('%j is malformed', (text) => {
  expect(readNumber(text).kind).toBe('malformed')
})

test.each([
  '%2531900',
  '1900%f',
  '1900%ff',
  '%3B1900',
  '1900%00',
  '%EF%BC%91',
  ';phone-context=+1',
])('the user part %s is malformed: escapes are resolved once, and mean what they say', (user) =>
  expect(readUserPart(user).kind).toBe('malformed'),
)

test('what holds a letter is a name, and stays as it is written', () => {
  for (const name of ['alice', 'alice.b-2', '1900FLOWERS', '1-900x', 'é'])
    expect(readNumber(name)).toEqual({ kind: 'name', text: name })
  expect(readUserPart('acme%40north')).toEqual({ kind: 'name', text: 'acme@north' })
})

test('a spelling and its number are one, in plain text and in user parts', () => {
  const cases = telephoneNumber.chain((number) =>
    fc.tuple(fc.constant(number), spellings(number), escapedSpellings(number)),
  )
  fc.assert(
    fc.property(cases, ([number, plain, escaped]) => {
      expect(readNumber(plain)).toEqual({ kind: 'number', text: number })
      expect(readUserPart(escaped)).toEqual({ kind: 'number', text: number })
    }),
  )
})

test('whatever is read: a number is in the normal form, reading it again changes nothing, and it is bounded', () => {
  const anything = fc.nat(0xffff).map((code) => String.fromCharCode(code))
  const text = fc.oneof(
    fc.string({ unit: anything, maxLength: 150 }),
    fc.string({ unit: fc.constantFrom(...'+-.() 019*#%;ax1٣'.split('')), maxLength: 80 }),
  )
  fc.assert(
    fc.property(text, (value) => {
      for (const read of [readNumber(value), readUserPart(value)]) {
        expect(read.kind === 'number').toBe(/^\+?[0-9*#]{1,64}$/.test(read.text))
        expect(read.text.length).toBeLessThanOrEqual(64)
        expect(read.text).not.toMatch(/\p{Cc}/u)
        if (read.kind === 'number') expect(numberOrText(read.text)).toBe(read.text)
      }
    }),
  )
})
