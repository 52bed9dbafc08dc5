/**
 * Migrates a database to this program's schema, with checksums. On SQLite each migration is one transaction; on a
 * PostgreSQL server all of them are.
 */
import { createHash } from 'node:crypto'
import { closeSync, openSync } from 'node:fs'
import type Sqlite from 'better-sqlite3'
import { forPostgres } from './migrations/for-postgres.ts'
import { type Migration, migrations } from './migrations/index.ts'
import { APPLICATION_ID, asRefusal, DatabaseRefused, refuseNewer, unreleased } from './refusal.ts'
import type { PostgresStatements } from './sql/postgres-statements.ts'

export interface PostgresReport {
  readonly from: number
  readonly to: number
  /** Names of the migrations applied by this call. */
  readonly applied: readonly string[]
}

export interface MigrationReport extends PostgresReport {
  /** Path of the copy that was made before existing data was migrated. */
  readonly copy: string | null
}

/**
 * Applies the missing migrations. Safe to repeat and to interrupt: a migration and its mark are one transaction.
 *
 * @param now milliseconds UTC, used as the time of application and in the copy's name.
 * @throws {DatabaseRefused} the database is newer, damaged, or was migrated by an unreleased or a modified program.
 */
export function migrate(
  sqlite: Sqlite.Database,
  now: number,
  known: readonly Migration[] = migrations,
): MigrationReport {
  try {
    return applyMissing(sqlite, now, known)
  } catch (error) {
    throw asRefusal(sqlite.name, error)
  }
}

function applyMissing(
  sqlite: Sqlite.Database,
  now: number,
  known: readonly Migration[],
): MigrationReport {
  const from = Number(sqlite.pragma('user_version', { simple: true }))
  refuseForeign(sqlite.name, from > 0 ? appliedOf(sqlite) : [], known)
  const missing = known.filter((migration) => migration.version > from)
  const copy = from > 0 && missing.length > 0 ? copyBefore(sqlite, from, now) : null
  for (const migration of missing) applyOne(sqlite, migration, now)
  return { from, to: known.length, applied: missing.map(({ name }) => name), copy }
}

/** A migration that a database has had. */
export interface Applied {
  readonly version: number
  readonly name: string
  readonly checksum: Buffer
}

/**
 * @param applied oldest first.
 * @throws {DatabaseRefused} this program did not apply them: another version did, or a modified program.
 */
function refuseForeign(
  database: string,
  applied: readonly Applied[],
  known: readonly Migration[],
): void {
  refuseUnreleased(database, applied, known)
  refuseNewer(database, applied.at(-1)?.version ?? 0, known.length)
  for (const { version, checksum } of applied) {
    const migration = known[version - 1]
    if (migration !== undefined && checksum.equals(checksumOf(migration))) continue
    throw new DatabaseRefused(
      `cannot use database ${database}: its migration ${version} differs from this program's`,
    )
  }
}

/** Unreleased versions began with a migration of another name. */
function refuseUnreleased(
  database: string,
  [first]: readonly Pick<Applied, 'name'>[],
  known: readonly Migration[] = migrations,
): void {
  if (first !== undefined && first.name !== known[0]?.name) throw unreleased(database)
}

const appliedOf = (sqlite: Sqlite.Database): Applied[] =>
  sqlite
    .prepare<[], Applied>('SELECT version, name, checksum FROM schema_migration ORDER BY version')
    .all()

/** `VACUUM INTO` makes a consistent copy even while others write, and never overwrites. */
function copyBefore(sqlite: Sqlite.Database, version: number, now: number): string | null {
  if (sqlite.memory) return null
  const copy = `${sqlite.name}.v${version}-${new Date(now).toISOString().replaceAll(/[:.]/g, '')}`
  // Readable by its owner only, like the database. SQLite writes into an empty file and keeps its mode.
  closeSync(openSync(copy, 'wx', 0o600))
  sqlite.prepare('VACUUM INTO ?').run(copy)
  return copy
}

function applyOne(sqlite: Sqlite.Database, migration: Migration, now: number): void {
  const apply = sqlite.transaction(() => {
    // Another process may have migrated since the first check.
    if (Number(sqlite.pragma('user_version', { simple: true })) >= migration.version) return
    sqlite.exec(markTable)
    sqlite.exec(migration.sql)
    sqlite
      .prepare(
        'INSERT INTO schema_migration (version, name, checksum, applied_at) VALUES (?, ?, ?, ?)',
      )
      .run(migration.version, migration.name, checksumOf(migration), now)
    sqlite.pragma(`user_version = ${migration.version}`)
    sqlite.pragma(`application_id = ${APPLICATION_ID}`)
  })
  apply.immediate()
}

const markTable = `CREATE TABLE IF NOT EXISTS schema_migration (
  version INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  checksum BLOB NOT NULL,
  applied_at INTEGER NOT NULL
) STRICT`

const checksumOf = ({ sql, forServer = '' }: Migration): Buffer =>
  createHash('sha256').update(`${sql}${forServer}`).digest()

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
  return statements.exclusively(MIGRATION_LOCK, () =>
    applyMissingOnServer(statements, name, now, known),
  )
}

async function applyMissingOnServer(
  statements: PostgresStatements,
  name: string,
  now: number,
  known: readonly Migration[],
): Promise<PostgresReport> {
  if (!(await isMarked(statements, name))) await statements.execute(serverMarkTable)
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

const serverMarkTable = `CREATE TABLE schema_migration (
  version bigint PRIMARY KEY,
  name text NOT NULL,
  checksum bytea NOT NULL,
  applied_at bigint NOT NULL
)`
