import { expect, test } from 'vitest'
import {
  codeLength,
  countedNumbers,
  exitCodeOf,
  international,
  internationalPrefix,
} from '../../../schema/rules/numbers.ts'

const codes = ['0011', '011', '810', '00']

test.each([
  ['0049301234', '+49301234'],
  ['001149301234', '+49301234'],
  ['+01149301234', '+49301234'],
  ['000049301234', '+49301234'],
])('%s is dialled in place of %s', (dialled, number) => {
  expect(international(dialled, codes)).toBe(number)
  expect(international(number, codes)).toBe(number)
})

const numbers = ['+49301234', '49301234', '030123456', '+81049301234', '*31#0049301234', 'alice']
// Codes alone, extensions, services of the place, and what begins with no code.
const short = ['00', '0011', '', '+', '0042', '00112', '011112', '0000049301234', '00049301234']

test.each([...numbers, ...short])('%s stays as it is', (number) => {
  expect(international(number, codes)).toBe(number)
})

test('an installation that names no exit codes has none', () => {
  expect(international('0049301234', undefined)).toBe('0049301234')
  expect(international('0049301234', [])).toBe('0049301234')
  expect(internationalPrefix('0049', undefined)).toBe('0049')
})

test.each([
  ['49', '49'],
  ['0049', '49'],
  ['00', '+'],
  ['000', '000'],
  ['', ''],
])('the prefix %j is compared as %j', (prefix, compared) => {
  expect(internationalPrefix(prefix, codes)).toBe(compared)
})

test.each([
  ['+49301234', 0],
  ['00049301234', 2],
  ['0011042', 4],
  ['030123456', undefined],
])('%s begins with so many digits of an exit code: %j', (number, length) => {
  expect(codeLength(number, codes)).toBe(length)
  expect(codeLength(number.replace('+', ''))).toBeUndefined()
})

test('of two exit codes the longer one is meant', () => {
  expect(exitCodeOf('001149', codes)).toBe('0011')
  expect(exitCodeOf('49', codes)).toBe('')
})

test.each([
  ['19005551234', '+19005551234', ['+19005551234']],
  ['0019005551234', '19005551234', ['19005551234']],
  ['01119005551234', '901119005551234', ['+19005551234']],
  ['000019005551234', '919005551234', ['+19005551234']],
  // The digits that complete a number may be a carrier's own code.
  ['19005551234', '+9005551234', ['19005551234', '+9005551234']],
  ['777719005551234567', '19005551234567', ['777719005551234567', '19005551234567']],
  ['1010#19005551234', '19005551234', ['19005551234']],
  ['', '1900', ['1900']],
])('a call for which %j is sent in place of %j counts as one to %j', (sent, dialled, counted) => {
  expect(countedNumbers(sent, dialled, codes)).toEqual(counted)
})
