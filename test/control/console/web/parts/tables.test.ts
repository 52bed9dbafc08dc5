/** Tables of the console: amounts below each other, and what their search finds. */
import { expect, test } from 'vitest'
import { decimalsOf, padded } from '../../../../../control/console/web/parts/format.ts'
import { arranged } from '../../../../../control/console/web/parts/table-state.ts'

test('amounts of a column get the same decimals, and none is rounded', () => {
  const amounts = ['0.6', '12', '−0.012345', '1234567.50']
  const most = Math.max(...amounts.map(decimalsOf))
  expect(amounts.map((amount) => padded(amount, most))).toEqual([
    '0.600000',
    '12.000000',
    '−0.012345',
    '1234567.500000',
  ])
  expect(padded('0.123456', 2)).toBe('0.123456')
})

test('the search finds what stands on the second line, and the order is that of the first', () => {
  const rows = [
    { name: 'b', numbers: '4930' },
    { name: 'a', numbers: '4940' },
    { name: 'c', numbers: null },
  ]
  const columns = [
    {
      name: 'name',
      title: 'Name',
      value: (row: (typeof rows)[number]) => row.name,
      also: (row: (typeof rows)[number]) => row.numbers,
    },
  ]
  const names = (search: string, sortBy?: string) =>
    arranged(rows, columns, { search, sortBy, isDescending: false }).map(({ name }) => name)
  expect(names('4940')).toEqual(['a'])
  expect(names('49', 'name')).toEqual(['a', 'b'])
  expect(names('null')).toEqual([])
})
