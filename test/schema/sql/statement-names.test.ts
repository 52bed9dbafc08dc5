import { expect, test } from 'vitest'
import { StatementNames } from '../../../schema/sql/statement-names.ts'

test('however many texts come, at most 400 are prepared, and those that come once are not', () => {
  const names = new StatementNames()
  for (let text = 0; text < 5_000; text += 1) expect(names.of(`once ${text}`)).toBeUndefined()
  const given = new Set<string | undefined>()
  for (let text = 0; text < 5_000; text += 1)
    for (let use = 0; use < 3; use += 1) given.add(names.of(`often ${text}`))
  expect(given.size).toBe(401)
})
