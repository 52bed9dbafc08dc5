/** What a change says of a field: people read names, amounts and dates, no ids and columns. */
import { expect, test } from 'vitest'
import {
  fieldChange,
  fieldWords,
  noMeaning,
  nounWords,
  viewEffect,
} from '../../../control/changes/field-words.ts'
import type { Json, StateMeaning } from '../../../control/changes/kinds.ts'
import { nouns } from '../../../control/resources/nouns.ts'

const told = (name: string, from: Json, to: Json, meaning: Partial<StateMeaning> = {}) =>
  fieldChange(
    name,
    { state: { [name]: from }, meaning: { ...noMeaning, ...meaning } },
    { state: { [name]: to }, meaning: { ...noMeaning, ...meaning } },
  )

test('ids are names, amounts have a currency, limits and dates are words', () => {
  expect(told('customer_id', null, 3, { names: { customer_id: 'acme' } })).toBe(
    'customer "acme", was none',
  )
  expect(told('credit_limit_micros', 0, 14_900, { currency: 'EUR' })).toBe(
    'credit limit 0.0149 EUR, was 0.00 EUR',
  )
  expect(told('max_concurrent_calls', 0, 5)).toBe('calls at once 5, was unlimited')
  expect(told('is_active', true, false)).toBe('in use no, was yes')
  expect(told('effective_from', null, 1_700_000_000_000)).toBe(
    'valid from 2023-11-14T22:13:20.000Z, was none',
  )
})

test('of lists it says what was added and removed, of objects the parts that differ', () => {
  expect(told('numbers', ['1', '2'], ['2', '3'])).toBe('numbers: "3" added, "1" removed')
  expect(told('numbers', [], ['1', '2', '3', '4', '5'])).toBe(
    'numbers: "1", "2", "3" and 2 more added',
  )
  expect(told('codecs', ['opus', 'pcma'], ['pcma', 'opus'])).toBe('order of the codecs')
  expect(told('gateways', [{ host: 'a' }], [])).toBe('gateways 0, was 1')
  expect(told('probe', { interval_ms: 500, ok_codes: [200] }, { interval_ms: 900 })).toBe(
    'probe (interval ms 900, was 500, ok codes)',
  )
})

test('a text of others cannot pass for a part of the sentence', () => {
  expect(told('name', 'a', 'b", was "c')).toBe(String.raw`name "b\", was \"c", was "a"`)
})

test('what cannot be undone is told by what the API shows of it', () => {
  const [before, after] = [
    { role: 'operator', updated_at: 1 },
    { role: 'auditor', updated_at: 2 },
  ]
  expect(viewEffect('The user "ada"', null, after)).toBe('The user "ada" is created.')
  expect(viewEffect('The user "ada"', before, after, ['its password'])).toBe(
    'The user "ada" is changed: its password; role "auditor", was "operator".',
  )
  expect(viewEffect('The user "ada"', before, { ...before, updated_at: 3 })).toBe(undefined)
  expect(viewEffect('The user "ada"', before, null)).toBe('The user "ada" is removed.')
})

test('no field and no noun has the name of a column', () => {
  expect(fieldWords('is_of_platform')).toBe('of platform')
  for (const { noun, fields } of Object.values(nouns)) {
    expect(nounWords(noun)).toMatch(/^(?:[A-Z]{2}|[a-z])/)
    for (const name of Object.keys(fields.body.shape))
      expect(fieldWords(name)).not.toMatch(/_|\bis /)
  }
})
