import { sql, type RawBuilder } from 'kysely'
import { expect, test } from 'vitest'
import { first, includes, startsWith } from '../../../schema/sql/query.ts'
import { emptyStore } from '../../support/empty-store.ts'

const store = emptyStore()
const holds = async (condition: RawBuilder<boolean>) =>
  Boolean((await first(store, store.db.selectNoFrom(condition.as('holds'))))?.holds)

test.each([
  ['tool revoke', 'tool ', true, true],
  ['a tool', 'tool', false, true],
  ['Tool', 'tool', false, false],
  ['100 %', '%', false, true],
  ['100', '%', false, false],
  ['a_b', '_', false, true],
  ['äöü😀x', 'äö', true, true],
  ['äöü😀x', '😀', false, true],
  ['short', 'shorter', false, false],
  ['any', '', true, true],
])('"%s" and "%s"', async (text, part, isStart, isIncluded) => {
  const value = sql<string>`${text}`
  expect(await holds(startsWith(value, part))).toBe(isStart)
  expect(await holds(includes(value, part))).toBe(isIncluded)
})
