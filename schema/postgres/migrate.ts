/** Migrates a database on a PostgreSQL server to this program's schema: all of it in one transaction, or nothing. */
import { type Applied, checksumOf, refuseForeign, refuseUnreleased } from '../migrate.ts'
import { forPostgres } from '../migrations/for-postgres.ts'
import { migrations, type Migration } from '../migrations/index.ts'
import { DatabaseRefused } from '../refusal.ts'
import type { PostgresStatements } from '../sql/postgres-statements.ts'

export interface PostgresReport {
  readonly from: number
  readonly to: number
  /** Names of the migrations applied by this call. */
  readonly applied: readonly string[]
}

/** Of the advisory lock: several nodes that start at once migrate once. */
const MIGRATION_LOCK = 0x70_11_6a_7e

/**
 * @param name of the database, for the operator.
 * @param now milliseconds UTC, used as the time of application.
 * @throws {DatabaseRefused} it is newer, another program's, or was migrated by an unreleased or a modified program.
 */
export function migratePostgres(
  statements: PostgresStatements,
  name: string,
  now: number,
  known: readonly Migration[] = migrations,
): Promise<PostgresReport> {
  return statements.exclusively(MIGRATION_LOCK, () => applyMissing(statements, name, now, known))
}

async function applyMissing(
  statements: PostgresStatements,
  name: string,
  now: number,
  known: readonly Migration[],
): Promise<PostgresReport> {
  if (!(await isMarked(statements, name))) await statements.execute(markTable)
  const done = await statements
    .prepare<Applied>('SELECT version, name, checksum FROM schema_migration ORDER BY version')
    .all([])
  const from = done.at(-1)?.version ?? 0
  refuseForeign(name, done, known)
  const missing = known.filter(({ version }) => version > from)
  const mark = statements.prepare(
    'INSERT INTO schema_migration (version, name, checksum, applied_at) VALUES ($1, $2, $3, $4)',
  )
  for (const migration of missing) {
    await statements.execute(forPostgres(migration))
    await mark.run([migration.version, migration.name, checksumOf(migration), now])
  }
  return { from, to: known.length, applied: missing.map((migration) => migration.name) }
}

/**
 * 0: it was never migrated.
 *
 * @throws {DatabaseRefused} an unreleased version has made it.
 */
export async function versionOf(statements: PostgresStatements, name: string): Promise<number> {
  const mark = await statements
    .prepare<{ readonly there: string | null }>(
      "SELECT to_regclass('schema_migration')::text AS there",
    )
    .get([])
  if (mark?.there === null) return 0
  const rows = await statements
    .prepare<Pick<Applied, 'version' | 'name'>>(
      'SELECT version, name FROM schema_migration ORDER BY version',
    )
    .all([])
  refuseUnreleased(name, rows)
  return rows.at(-1)?.version ?? 0
}

/** @throws {DatabaseRefused} it has tables that are not ours. */
async function isMarked(statements: PostgresStatements, name: string): Promise<boolean> {
  const tables = await statements
    .prepare<{ readonly tablename: string }>(
      'SELECT tablename FROM pg_tables WHERE schemaname = current_schema()',
    )
    .all([])
  if (tables.length === 0) return false
  if (tables.some(({ tablename }) => tablename === 'schema_migration')) return true
  throw new DatabaseRefused(`cannot use database ${name}: it belongs to another program`)
}

const markTable = `CREATE TABLE schema_migration (
  version bigint PRIMARY KEY,
  name text NOT NULL,
  checksum bytea NOT NULL,
  applied_at bigint NOT NULL
)`
