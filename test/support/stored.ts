/** Reads and changes of a test in a store, in SQL that both databases know; parameters are `?`. */
import type { LocalStore, Store } from '../../schema/storage/store.ts'
import { PostgresStatements } from '../../schema/sql/postgres-statements.ts'
import type { PreparedStatement, SqlValue, Statements } from '../../schema/sql/statements.ts'
import { tablesChanged } from './reused-database.ts'

export const readRows = <R = Readonly<Record<string, unknown>>>(
  { statements }: Pick<Store, 'statements'>,
  sql: string,
  ...values: readonly SqlValue[]
): Promise<R[]> => prepared<R>(statements, sql).all(values)

/** The first row. */
export const readRow = <R = Readonly<Record<string, unknown>>>(
  { statements }: Pick<Store, 'statements'>,
  sql: string,
  ...values: readonly SqlValue[]
): Promise<R | undefined> => prepared<R>(statements, sql).get(values)

/** The first column of all rows. */
export async function readColumn<V = unknown>(
  { statements }: Pick<Store, 'statements'>,
  sql: string,
  ...values: readonly SqlValue[]
): Promise<V[]> {
  const all = await prepared(statements, sql).arrays(values)
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
): Promise<number> => prepared(statements, sql).run(values)

/** Several statements, apart by semicolons. */
export async function runScript(store: Pick<Store, 'statements'>, sql: string): Promise<void> {
  for (const statement of sql.split(';'))
    if (statement.trim() !== '') await runSql(store, statement)
}

/** Every such statement on the table fails, until the returned function is called. */
export async function failing(
  store: Pick<Store, 'statements'>,
  event: 'INSERT' | 'UPDATE' | 'DELETE',
  table: string,
): Promise<() => Promise<unknown>> {
  const isServer = store.statements instanceof PostgresStatements
  const trigger = `CREATE TRIGGER failing BEFORE ${event} ON ${table}`
  const statements = isServer
    ? [
        `CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'full'; END $$`,
        `${trigger} FOR EACH ROW EXECUTE FUNCTION fail()`,
      ]
    : [`${trigger} BEGIN SELECT RAISE(ABORT, 'full'); END`]
  for (const sql of statements) await runSql(store, sql)
  return () => runSql(store, `DROP TRIGGER failing${isServer ? ` ON ${table}` : ''}`)
}

function prepared<R>(statements: Statements, sql: string): PreparedStatement<R> {
  if (!(statements instanceof PostgresStatements)) return statements.prepare<R>(sql)
  if (/^\s*(?:CREATE|ALTER|DROP)\b/i.test(sql)) tablesChanged(statements)
  let place = 0
  return statements.prepare<R>(sql.replaceAll('?', () => `$${(place += 1)}`))
}

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
