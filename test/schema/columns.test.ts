import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  moneyToDecimal,
  moneyToNumber,
  parseMoney,
  parseTime,
  timeToText,
} from '../../schema/columns.ts'

test.each([
  [0, '0.00'],
  [641_700, '0.6417'],
  [600_000, '0.60'],
  [6_500_000, '6.50'],
  [1, '0.000001'],
  [-10_000, '-0.01'],
  [12_345_678_900_000, '12345678.90'],
])('%i micro-units are %s', (micros, text) => {
  expect(moneyToDecimal(micros)).toBe(text)
  expect(parseMoney(text)).toBe(micros)
})

test('every amount survives its decimal text, and its JSON number', () => {
  fc.assert(
    fc.property(fc.maxSafeInteger(), (micros) => {
      expect(parseMoney(moneyToDecimal(micros))).toBe(micros)
    }),
  )
  const ordinary = fc.integer({ min: -1_000_000_000_000_000, max: 1_000_000_000_000_000 })
  fc.assert(
    fc.property(ordinary, (micros) => {
      expect(parseMoney(moneyToNumber(micros))).toBe(micros)
    }),
  )
})

test.each(['', '1.', '.5', '1e3', '1,5', ' 1', '0x1', '1.0000001', '99999999999', 'NaN', '--1'])(
  '"%s" is no amount',
  (text) => {
    expect(parseMoney(text)).toBeUndefined()
  },
)

test.each([Number.NaN, Infinity, 0.000_000_1, 1e10, 1.000_000_05])('%d is no amount', (number) => {
  expect(parseMoney(number)).toBeUndefined()
})

test('an amount of nothing has no sign', () => {
  expect(Object.is(parseMoney(-0), 0)).toBe(true)
  expect(Object.is(parseMoney('-0.00'), 0)).toBe(true)
})

test('times are RFC 3339 with an offset, and nothing else', () => {
  expect(parseTime('2026-01-05T11:00:00+01:00')).toBe(Date.UTC(2026, 0, 5, 10))
  expect(timeToText(Date.UTC(2026, 0, 5, 10))).toBe('2026-01-05T10:00:00.000Z')
  for (const text of ['2026-01-05', '2026-01-05T10:00:00', '2026-02-31T10:00:00Z', '1767607200'])
    expect(parseTime(text)).toBeUndefined()
})
