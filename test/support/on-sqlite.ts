/** Whether the tests run on PostgreSQL, and those that are about SQLite. */
import { test } from 'vitest'
import type { sqliteReasons } from './sqlite-only.ts'

export const isOnPostgres = process.env['TEST_DATABASE'] === 'postgres'

/**
 * Takes the place of `test` where only SQLite can show it. The reasons stand in `sqlite-only.ts`.
 */
export function onSqlite(_reason: keyof typeof sqliteReasons): typeof test {
  return isOnPostgres ? unregistered : test
}

const unregistered = Object.assign(() => undefined, {
  each: () => () => undefined,
}) as unknown as typeof test
