/** Migrates a database to this program's schema: each migration in one transaction, with checksums. */
import { createHash } from 'node:crypto'
import { closeSync, openSync } from 'node:fs'
import type Sqlite from 'better-sqlite3'
import { refuseNewer } from './open.ts'
import { migrations, type Migration } from './migrations/index.ts'
import { giveOnce, refuseDangling, relax } from './rebuild.ts'
import { asRefusal, DatabaseRefused } from './refusal.ts'

export interface MigrationReport {
  readonly from: number
  readonly to: number
  /** Names of the migrations applied by this call. */
  readonly applied: readonly string[]
  /** Path of the copy that was made before existing data was migrated. */
  readonly copy: string | null
}

/**
 * Applies the missing migrations. Safe to repeat and to interrupt: a migration and its mark are one transaction.
 *
 * @param now milliseconds UTC, used as the time of application and in the copy's name.
 * @throws {DatabaseRefused} the database is newer, damaged, or was migrated by a modified program.
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
  refuseNewer(sqlite.name, from, known.length)
  if (from > 0) verifyChecksums(sqlite.name, appliedOf(sqlite), known)
  const missing = known.filter((migration) => migration.version > from)
  const copy = from > 0 && missing.length > 0 ? copyBefore(sqlite, from, now) : null
  for (const migration of missing) applyOne(sqlite, migration, now)
  return { from, to: known.length, applied: missing.map(({ name }) => name), copy }
}

/** @throws {DatabaseRefused} a migration differs from the one that was applied. */
export function verifyChecksums(
  name: string,
  applied: readonly { readonly version: number; readonly checksum: Buffer }[],
  known: readonly Migration[],
): void {
  for (const { version, checksum } of applied) {
    const migration = known[version - 1]
    if (migration !== undefined && checksum.equals(checksumOf(migration))) continue
    throw new DatabaseRefused(
      `cannot use database ${name}: its migration ${version} differs from this program's`,
    )
  }
}

const appliedOf = (sqlite: Sqlite.Database) =>
  sqlite
    .prepare<[], { version: number; checksum: Buffer }>(
      'SELECT version, checksum FROM schema_migration ORDER BY version',
    )
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
    for (const relaxed of migration.relaxed ?? []) relax(sqlite, relaxed)
    if (migration.onceOnly !== undefined) giveOnce(sqlite, migration.onceOnly)
    sqlite.exec(migration.sql)
    if (isRebuilding(migration)) refuseDangling(sqlite)
    sqlite
      .prepare(
        'INSERT INTO schema_migration (version, name, checksum, applied_at) VALUES (?, ?, ?, ?)',
      )
      .run(migration.version, migration.name, checksumOf(migration), now)
    sqlite.pragma(`user_version = ${migration.version}`)
  })
  if (!isRebuilding(migration)) apply.immediate()
  else withoutForeignKeys(sqlite, () => apply.immediate())
}

const isRebuilding = ({ relaxed, onceOnly }: Migration): boolean =>
  relaxed !== undefined || onceOnly !== undefined

/** Inside a transaction the pragma has no effect. */
function withoutForeignKeys(sqlite: Sqlite.Database, work: () => void): void {
  const before = Number(sqlite.pragma('foreign_keys', { simple: true }))
  sqlite.pragma('foreign_keys = OFF')
  try {
    work()
  } finally {
    sqlite.pragma(`foreign_keys = ${before}`)
  }
}

const markTable = `CREATE TABLE IF NOT EXISTS schema_migration (
  version INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  checksum BLOB NOT NULL,
  applied_at INTEGER NOT NULL
) STRICT`

/** Without the other parts, the checksum covers only the text, as in earlier versions. */
export function checksumOf({ relaxed, onceOnly, sql, forServer = '' }: Migration): Buffer {
  const rebuilt = [relaxed, onceOnly].map((each) =>
    each === undefined ? '' : JSON.stringify(each),
  )
  const text = `${rebuilt.join('')}${sql}${forServer}`
  return createHash('sha256').update(text).digest()
}
