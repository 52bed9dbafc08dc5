import { expect, test } from 'vitest'
import { PrefixTable } from '../../../engine/routing/prefix-table.ts'

const table = new PrefixTable([
  ['', 'any'],
  ['49', 'Germany'],
  ['+4930', 'Berlin'],
  ['4930', 'Berlin too'],
  ['1', 'America'],
])

test('prefixes match longest first, equal ones together', () => {
  expect([...table.matching('4930123')]).toEqual([['Berlin', 'Berlin too'], ['Germany'], ['any']])
  expect([...table.matching('44')]).toEqual([['any']])
  expect([...table.matching('')]).toEqual([['any']])
})

test('a prefix that is an exit code alone has the numbers with a + and those that still begin with the code', () => {
  const entries = [
    ['', 'any'],
    ['0', 'national'],
    ['00', 'abroad'],
    ['44', 'Britain'],
  ] as const
  const coded = new PrefixTable(entries, ['00'])
  expect([...coded.matching('+441632960000')]).toEqual([['Britain'], ['abroad'], ['any']])
  for (const number of ['000441632960000', '+000441632960000', '0042'])
    expect([...coded.matching(number)]).toEqual([['abroad'], ['national'], ['any']])
  expect([...coded.matching('01632960000')]).toEqual([['national'], ['any']])
  expect([...new PrefixTable([['00', 'abroad']], ['00']).matching('0004416')]).toEqual([['abroad']])
})
