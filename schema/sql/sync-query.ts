/** Runs a Kysely query synchronously on the handle, inside any open transaction. */
import type { Compilable } from 'kysely'
import { sqliteOf, type MaybeLocal } from './handle.ts'
import { toSqlValue, type SqlValue } from './sql-value.ts'

export function all<R>(store: MaybeLocal, query: Compilable<R>): R[] {
  const { sql, parameters } = query.compile()
  return sqliteOf(store)
    .prepare<SqlValue[], R>(sql)
    .all(...parameters.map(toSqlValue))
}

export function first<R>(store: MaybeLocal, query: Compilable<R>): R | undefined {
  const { sql, parameters } = query.compile()
  return sqliteOf(store)
    .prepare<SqlValue[], R>(sql)
    .get(...parameters.map(toSqlValue))
}

/** Runs an INSERT, UPDATE or DELETE without `returning`. Returns the number of affected rows. */
export function execute<R>(store: MaybeLocal, query: Compilable<R>): number {
  const { sql, parameters } = query.compile()
  return sqliteOf(store)
    .prepare<SqlValue[]>(sql)
    .run(...parameters.map(toSqlValue)).changes
}

/** Runs an INSERT. Returns the id of the new row. */
export function insert<R>(store: MaybeLocal, query: Compilable<R>): number {
  const { sql, parameters } = query.compile()
  const { lastInsertRowid } = sqliteOf(store)
    .prepare<SqlValue[]>(sql)
    .run(...parameters.map(toSqlValue))
  return Number(lastInsertRowid)
}
