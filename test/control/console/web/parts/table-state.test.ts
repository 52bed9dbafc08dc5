import { expect, test } from 'vitest'
import {
  arranged,
  inSight,
  nextSort,
  readTableState,
} from '../../../../../control/console/web/parts/table-state.ts'

interface Row {
  readonly name: string
  readonly cost: number | null
}
const rows: readonly Row[] = [
  { name: 'call 10', cost: 2 },
  { name: 'call 9', cost: null },
  { name: 'Callback', cost: 10 },
]
const columns = [
  { name: 'name', title: 'Name', value: (row: Row) => row.name },
  { name: 'cost', title: 'Cost', value: (row: Row) => row.cost },
]
const shown = (query: Readonly<Record<string, string>>) =>
  arranged(rows, columns, readTableState(query)).map(({ name }) => name)

test('the address says what is searched and how it is sorted', () => {
  expect(shown({})).toEqual(['call 10', 'call 9', 'Callback'])
  expect(shown({ q: 'CALL 9' })).toEqual(['call 9'])
  expect(shown({ q: 'back call' })).toEqual(['Callback'])
  expect(shown({ sort: 'name' })).toEqual(['call 9', 'call 10', 'Callback'])
  expect(shown({ sort: 'no-such-column' })).toEqual(['call 10', 'call 9', 'Callback'])
})

test('rows without a value are last in both directions', () => {
  expect(shown({ sort: 'cost' })).toEqual(['call 10', 'Callback', 'call 9'])
  expect(shown({ sort: '-cost' })).toEqual(['Callback', 'call 10', 'call 9'])
})

test('a heading sorts up, then down, then not', () => {
  const after = (sort?: string) =>
    nextSort(readTableState(sort === undefined ? {} : { sort }), 'cost')
  expect([after(), after('cost'), after('-cost'), after('-name')]).toEqual([
    'cost',
    '-cost',
    undefined,
    'cost',
  ])
})

test('of 2,000 rows only those in sight exist', () => {
  expect(inSight(2_000, 40, 0, 600)).toEqual({ from: 0, to: 23 })
  expect(inSight(2_000, 40, 40_000, 600)).toEqual({ from: 992, to: 1_023 })
  expect(inSight(2_000, 40, 79_400, 600)).toEqual({ from: 1_977, to: 2_000 })
  // Scrolled beyond a list that has become shorter.
  expect(inSight(3, 40, 40_000, 600)).toEqual({ from: 3, to: 3 })
})
