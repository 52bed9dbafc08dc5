/** Numbers and blocks by number, while rows come and go. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { NumberTable, type Numbered } from '../../../schema/rules/number-table.ts'

const block = (first: number, length: number): Numbered => ({
  first: `+${first}`,
  last: `+${first + length - 1}`,
})

test('a table of blocks that are added and deleted answers as the rows that are left', () => {
  const place = fc.integer({ min: 0, max: 1_500 })
  const numbers = fc.array(fc.integer({ min: 0, max: 15_000 }), { minLength: 20, maxLength: 20 })
  const changes = fc.array(place, { minLength: 1, maxLength: 3_000 })
  fc.assert(
    fc.property(changes, numbers, (places, called) => {
      const table = new NumberTable<Numbered>()
      const rows = new Map<number, Numbered>()
      for (const at of places) {
        const row = rows.get(at)
        if (row !== undefined) table.delete(row)
        rows.delete(at)
        if (row !== undefined) continue
        const added = block(4_930_000_000 + at * 10, 2 + (at % 8))
        rows.set(at, added)
        table.add(added)
      }
      for (const number of called) {
        const row = rows.get(Math.floor(number / 10))
        const isIn = row !== undefined && `+${4_930_000_000 + number}` <= row.last
        expect(table.find(`+${4_930_000_000 + number}`)).toBe(isIn ? row : undefined)
      }
    }),
    { numRuns: 60 },
  )
})

test('blocks that begin at one number are deleted one by one', () => {
  const table = new NumberTable<Numbered>()
  const rows = Array.from({ length: 1_000 }, () => block(4_930_000_000, 10))
  for (const row of rows) table.add(row)
  for (const [index, row] of rows.entries()) {
    table.delete(row)
    const found = table.find('+4930000005')
    expect(rows.slice(index + 1).includes(found ?? row)).toBe(index < 999)
  }
  expect(table.find('+4930000005')).toBeUndefined()
})
