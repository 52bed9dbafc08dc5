/** Runs a Kysely query synchronously on the handle, inside any open transaction. */
import type { Compilable } from 'kysely'
import { toSqlValue, type SqlValue } from './sql-value.ts'
import type { Store } from '../open.ts'

export function all<R>(store: Pick<Store, 'sqlite'>, query: Compilable<R>): R[] {
  const { sql, parameters } = query.compile()
  return store.sqlite.prepare<SqlValue[], R>(sql).all(...parameters.map(toSqlValue))
}

/** Returns each row as an array, in the order of the selected columns: twice as fast to read as an object. */
export function rawRows<V>(store: Pick<Store, 'sqlite'>, query: Compilable): V[] {
  const { sql, parameters } = query.compile()
  // The caller knows the selected columns.
  return store.sqlite
    .prepare(sql)
    .raw()
    .all(...parameters.map(toSqlValue)) as V[]
}

export function first<R>(store: Pick<Store, 'sqlite'>, query: Compilable<R>): R | undefined {
  const { sql, parameters } = query.compile()
  return store.sqlite.prepare<SqlValue[], R>(sql).get(...parameters.map(toSqlValue))
}

/** Runs an INSERT, UPDATE or DELETE without `returning`. Returns the number of affected rows. */
export function execute<R>(store: Store, query: Compilable<R>): number {
  const { sql, parameters } = query.compile()
  return store.sqlite.prepare<SqlValue[]>(sql).run(...parameters.map(toSqlValue)).changes
}

/** Runs an INSERT. Returns the id of the new row. */
export function insert<R>(store: Store, query: Compilable<R>): number {
  const { sql, parameters } = query.compile()
  const { lastInsertRowid } = store.sqlite
    .prepare<SqlValue[]>(sql)
    .run(...parameters.map(toSqlValue))
  return Number(lastInsertRowid)
}

/**
 * Runs `work` in a transaction; an exception rolls it back. Takes the write lock first, so that what it
 * reads is still true when it writes. Inside another transaction it is a savepoint.
 */
export function transaction<T>(store: Store, work: () => T): T {
  return store.sqlite.transaction(work).immediate()
}
