import { expect, test } from 'vitest'
import { StatementNames } from '../../../schema/sql/postgres-statements.ts'

test('a text that comes the third time is prepared under a name of its own', () => {
  const names = new StatementNames()
  expect([1, 2, 3, 4].map(() => names.of('SELECT 1'))).toEqual([undefined, undefined, 's0', 's0'])
  expect([1, 2, 3].map(() => names.of('SELECT 2')).at(-1)).toBe('s1')
})

test('however many texts come, at most 400 are prepared, and those that come once are not', () => {
  const names = new StatementNames()
  for (let text = 0; text < 5_000; text += 1) expect(names.of(`once ${text}`)).toBeUndefined()
  const given = new Set<string | undefined>()
  for (let text = 0; text < 5_000; text += 1)
    for (let use = 0; use < 3; use += 1) given.add(names.of(`often ${text}`))
  expect(given.size).toBe(401)
})
