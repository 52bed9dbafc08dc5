/**
 * Removes a constraint from a table. SQLite has no statement for that: the table is rebuilt from its own
 * SQL with one part replaced, and keeps rows, indexes and triggers (sqlite.org/lang_altertable.html §7).
 */
import type Sqlite from 'better-sqlite3'

/** Replaces `part` of the statement that created `table` with `replacement`. */
export interface Relaxed {
  readonly table: string
  readonly part: string
  readonly replacement: string
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
  sqlite.exec(`INSERT INTO ${copy} SELECT * FROM ${table}`)
  sqlite.exec(`DROP TABLE ${table}`)
  sqlite.exec(`ALTER TABLE ${copy} RENAME TO ${table}`)
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
