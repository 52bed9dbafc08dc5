/** Frequent statements of the control API: built and typed by Kysely once, then prepared once. */
import type { Compilable, Kysely } from 'kysely'
import { binderOf, type Param } from './compiled.ts'
import type { Database } from '../database.ts'
import type { Store } from '../open.ts'
import { prepareRead } from './read-apart.ts'
import type { SqlValue } from './sql-value.ts'

export interface Prepared<P, R> {
  get(values: P): Promise<R | undefined>
  all(values: P): Promise<R[]>
  /** Resolves with the number of inserted, changed or deleted rows. */
  run(values: P): Promise<number>
}

/**
 * Prepares a query whose variable parts are `param('name')`; a parameter is exactly one value. Inside `readApart` it is
 * one that reads, and it keeps running there.
 */
export function prepare<P extends { readonly [name in keyof P]: SqlValue }, R>(
  store: Pick<Store, 'statements' | 'db'>,
  build: (db: Kysely<Database>, param: Param<P>) => Compilable<R>,
): Prepared<P, R> {
  const { sql, bind } = binderOf(store, build)
  const statement = prepareRead<R>(store.statements, sql)
  return {
    get: (values) => statement.get(bind(values)),
    all: (values) => statement.all(bind(values)),
    run: (values) => statement.run(bind(values)),
  }
}
