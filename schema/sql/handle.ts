/**
 * The handle of a store, for synchronous statements in code that serves any database by its type. It ends with
 * the last of them in the control API.
 */
import type Sqlite from 'better-sqlite3'
import type { Store } from '../open.ts'

/** A store, or the handle alone. */
export type MaybeLocal = Partial<Pick<Store, 'db'>> & { readonly sqlite?: Sqlite.Database }

/** @throws {TypeError} the store has no handle. */
export function sqliteOf({ sqlite }: MaybeLocal): Sqlite.Database {
  if (sqlite === undefined) throw new TypeError('this database has no synchronous statements')
  return sqlite
}
