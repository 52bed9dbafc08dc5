/** What a test reads from a store and changes in it, in SQL that both databases know; parameters are `?`. */
import type { LocalStore, Store } from '../../schema/open.ts'
import type { SqlValue } from '../../schema/sql/sql-value.ts'

export const readRows = <R = Readonly<Record<string, unknown>>>(
  { statements }: Pick<Store, 'statements'>,
  sql: string,
  ...values: readonly SqlValue[]
): Promise<R[]> => statements.prepare<R>(sql).all(values)

/** The first row. */
export const readRow = <R = Readonly<Record<string, unknown>>>(
  { statements }: Pick<Store, 'statements'>,
  sql: string,
  ...values: readonly SqlValue[]
): Promise<R | undefined> => statements.prepare<R>(sql).get(values)

/** The first column of all rows. */
export async function readColumn<V = unknown>(
  { statements }: Pick<Store, 'statements'>,
  sql: string,
  ...values: readonly SqlValue[]
): Promise<V[]> {
  const all = await statements.prepare(sql).arrays(values)
  return all.map((each) => (each as V[])[0] as V)
}

/** The first column of the first row. */
export async function readValue<V = unknown>(
  store: Pick<Store, 'statements'>,
  sql: string,
  ...values: readonly SqlValue[]
): Promise<V | undefined> {
  return (await readColumn<V>(store, sql, ...values))[0]
}

/** Resolves with the number of affected rows. */
export const runSql = (
  { statements }: Pick<Store, 'statements'>,
  sql: string,
  ...values: readonly SqlValue[]
): Promise<number> => statements.prepare(sql).run(values)

/**
 * The store of a test that is about SQLite.
 *
 * @throws {TypeError} it is another database.
 */
export function localOf(store: Store): LocalStore {
  if (!isLocal(store)) throw new TypeError('this is not an SQLite database')
  return store
}

const isLocal = (store: Store): store is LocalStore => 'sqlite' in store
