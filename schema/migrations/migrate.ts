/**
 * Migrates a database to this program's schema, with checksums. On SQLite each migration is one
 * transaction; on a PostgreSQL server all of them are.
 */
import { createHash } from 'node:crypto'
import { closeSync, openSync } from 'node:fs'
import Sqlite from 'better-sqlite3'
import { forPostgres, type Migration, migrations, newestVersion } from './index.ts'
import {
  APPLICATION_ID,
  asRefusal,
  DatabaseRefused,
  refuseNewer,
  unreleased,
} from '../sql/failure.ts'
import type { PostgresStatements } from '../sql/postgres-statements.ts'
import type { LocalStore } from '../storage/store.ts'
import type { Tables } from '../sql/query.ts'

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
 * Applies the missing migrations. Safe to repeat and to interrupt: a migration and its mark are one
 * transaction.
 *
 * @param now milliseconds UTC, used as the time of application and in the copy's name.
 * @throws {DatabaseRefused} the database is newer, damaged, or was migrated by an unreleased or a
 * modified program.
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

/** A migration that was applied to a database. */
export interface AppliedMigration {
  readonly version: number
  readonly name: string
  readonly checksum: Buffer
}

/**
 * @param applied oldest first.
 * @throws {DatabaseRefused} this program did not apply them: another version did, or a modified
 * program.
 */
function refuseForeign(
  database: string,
  applied: readonly AppliedMigration[],
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
  [first]: readonly Pick<AppliedMigration, 'name'>[],
  known: readonly Migration[] = migrations,
): void {
  if (first !== undefined && first.name !== known[0]?.name) throw unreleased(database)
}

const appliedOf = (sqlite: Sqlite.Database): AppliedMigration[] =>
  sqlite
    .prepare<[], AppliedMigration>(
      'SELECT version, name, checksum FROM schema_migration ORDER BY version',
    )
    .all()

/** `VACUUM INTO` makes a consistent copy even while others write, and never overwrites. */
function copyBefore(sqlite: Sqlite.Database, version: number, now: number): string | null {
  if (sqlite.memory) return null
  const copy = `${sqlite.name}.v${version}-${new Date(now).toISOString().replaceAll(/[:.]/g, '')}`
  // Readable by its owner only, like the database. SQLite writes into an empty file and keeps its
  // mode.
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

/** The advisory lock with which several instances that start at once migrate once. */
const MIGRATION_LOCK = 0x70_11_6a_7e

/**
 * @param name of the database, for the operator.
 * @param now milliseconds UTC, used as the time of application.
 * @throws {DatabaseRefused} it is newer, another program's, or was migrated by an unreleased or a
 * modified program.
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
    .prepare<AppliedMigration>(
      'SELECT version, name, checksum FROM schema_migration ORDER BY version',
    )
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
    .prepare<Pick<AppliedMigration, 'version' | 'name'>>(
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

// ---- a check: SQLite's own, and that the money adds up; it reads only --------------------

/** Maximum faults reported; more add nothing. */
const MAX_FAULTS = 20

/** Returns one line per fault; empty when there is none. */
export function findDamage(sqlite: Sqlite.Database): string[] {
  const version = Number(sqlite.pragma('user_version', { simple: true }))
  if (version < newestVersion)
    return [`schema version ${version} is older than this program's ${newestVersion}: run migrate`]
  return findFaults(sqlite)
}

/** The same for a database of an older version as well. */
export const findFaults = (sqlite: Sqlite.Database): string[] => [
  ...brokenPages(sqlite),
  ...wrongSchema(sqlite),
  ...brokenReferences(sqlite),
  ...wrongBalances({ sqlite }),
]

function brokenPages(sqlite: Sqlite.Database): string[] {
  const rows = sqlite.prepare<[], string>(`PRAGMA integrity_check(${MAX_FAULTS})`).pluck().all()
  return rows.filter((row) => row !== 'ok')
}

/** An added or missing trigger would change money unnoticed. */
function wrongSchema(sqlite: Sqlite.Database): string[] {
  const version = Number(sqlite.pragma('user_version', { simple: true }))
  const fresh = new Sqlite(':memory:')
  try {
    migrate(fresh, 0, migrations.slice(0, version))
    const [found, expected] = [schemaOf(sqlite), schemaOf(fresh)]
    const own = `schema version ${version} of this program`
    const lost = [...expected].flatMap(([name, sql]) => {
      if (!found.has(name)) return [`${name} is missing: it is in ${own}`]
      return found.get(name) === sql ? [] : [`${name} is not as in ${own}`]
    })
    const added = [...found.keys()].filter((name) => !expected.has(name))
    return [...lost, ...added.map((name) => `${name} is not in ${own}`)].slice(0, MAX_FAULTS)
  } finally {
    fresh.close()
  }
}

/**
 * SQL by type and name. Statistics, the table of given ids and the indexes of constraints are
 * SQLite's own.
 */
function schemaOf(sqlite: Sqlite.Database): ReadonlyMap<string, string> {
  const rows = sqlite
    .prepare<[], { type: string; name: string; sql: string }>(
      `SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL
        AND NOT (type = 'table' AND (name = 'sqlite_sequence' OR name GLOB 'sqlite_stat[1-4]'))
        ORDER BY type, name`,
    )
    .all()
  return new Map(rows.map(({ type, name, sql }) => [`${type} ${name}`, sql]))
}

function brokenReferences(sqlite: Sqlite.Database): string[] {
  const rows = sqlite
    .prepare<[], { table: string; rowid: number | null; parent: string }>(
      'PRAGMA foreign_key_check',
    )
    .all()
  return rows
    .slice(0, MAX_FAULTS)
    .map(({ table, rowid, parent }) => `row ${rowid} of ${table} refers to no row of ${parent}`)
}

/** A balance is the sum of its ledger entries, and equals the balance in the newest entry. */
const wrongBalances = (store: Pick<LocalStore, 'sqlite'>): string[] =>
  store.sqlite.prepare<[], WrongBalance>(wrongBalance).all().map(describeBalance)

/** The same on any database. */
export async function wrongBalancesIn({
  statements,
}: Pick<Tables, 'statements'>): Promise<string[]> {
  return (await statements.prepare<WrongBalance>(wrongBalance).all([])).map(describeBalance)
}

interface WrongBalance {
  readonly id: number
  readonly balance: string
  readonly total: string
}

const wrongBalance = `SELECT wallet.id AS id, CAST(wallet.balance_micros AS TEXT) AS balance,
    CAST(coalesce(sum(ledger_entry.amount_micros), 0) AS TEXT) AS total
  FROM wallet LEFT JOIN ledger_entry ON ledger_entry.wallet_id = wallet.id
  GROUP BY wallet.id, wallet.balance_micros
  HAVING wallet.balance_micros <> coalesce(sum(ledger_entry.amount_micros), 0) LIMIT ${MAX_FAULTS}`

const describeBalance = ({ id, balance, total }: WrongBalance): string =>
  `wallet ${id} holds ${balance} micro-units, its ledger adds up to ${total}`
