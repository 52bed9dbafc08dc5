/**
 * Changes a constraint of a table. SQLite has no statement for that: the table is rebuilt from its own
 * SQL with one part replaced, and keeps rows, indexes and triggers (sqlite.org/lang_altertable.html §7).
 */
import type Sqlite from 'better-sqlite3'

/** Replaces `part` of the statement that created `table` with `replacement`. */
export interface Relaxed {
  readonly table: string
  readonly part: string
  readonly replacement: string
}

/** Tables that give an id to one row only, also when that is removed. */
export interface OnceOnly {
  readonly tables: readonly string[]
  /** By table: queries for the highest id that was given to a row which may be gone. */
  readonly given: Readonly<Record<string, readonly string[]>>
}

/** Without AUTOINCREMENT, SQLite gives the id of the last row again when that is removed. As `relax`, which says how. */
export function giveOnce(sqlite: Sqlite.Database, { tables, given }: OnceOnly): void {
  const part = 'id INTEGER PRIMARY KEY,'
  const replacement = 'id INTEGER PRIMARY KEY AUTOINCREMENT,'
  for (const table of tables) {
    relax(sqlite, { table, part, replacement })
    const highest = Math.max(
      0,
      ...[`SELECT max(id) FROM "${table}"`, ...(given[table] ?? [])].map(
        (query) => sqlite.prepare<[], number | null>(query).pluck().get() ?? 0,
      ),
    )
    sqlite.prepare('DELETE FROM sqlite_sequence WHERE name = ?').run(table)
    sqlite.prepare('INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)').run(table, highest)
  }
}

/**
 * Runs inside the transaction of a migration, while foreign keys are not enforced: dropping a table would take the rows
 * that refer to it along.
 *
 * @throws {Error} the table does not have the part exactly once.
 */
export function relax(sqlite: Sqlite.Database, { table, part, replacement }: Relaxed): void {
  const made = sqlite
    .prepare<[string], string>("SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = ?")
    .pluck()
    .get(table)
  const [before = '', after, ...more] = made?.split(part) ?? []
  if (after === undefined || more.length > 0)
    throw new Error(`the table ${table} does not contain "${part}" exactly once`)
  const copy = `${table}_rebuilt`
  const named = `${before}${replacement}${after}`.replace(
    /^CREATE TABLE "?\w+"?/,
    () => `CREATE TABLE ${copy}`,
  )
  const attached = sqlite
    .prepare<[string], string>(
      "SELECT sql FROM sqlite_schema WHERE tbl_name = ? AND type IN ('index', 'trigger') AND sql IS NOT NULL",
    )
    .pluck()
    .all(table)
  sqlite.exec(named)
  sqlite.exec(`INSERT INTO ${copy} SELECT * FROM "${table}"`)
  sqlite.exec(`DROP TABLE "${table}"`)
  sqlite.exec(`ALTER TABLE ${copy} RENAME TO "${table}"`)
  for (const sql of attached) sqlite.exec(sql)
}

/**
 * @throws {Error} a row has a dangling reference.
 */
export function refuseDangling(sqlite: Sqlite.Database): void {
  const [dangling] = sqlite
    .prepare<[], { table: string; parent: string }>('PRAGMA foreign_key_check')
    .all()
  if (dangling === undefined) return
  throw new Error(`a row of ${dangling.table} refers to a missing row of ${dangling.parent}`)
}
