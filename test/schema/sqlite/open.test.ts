import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { expect, test } from 'vitest'
import { lockForServing } from '../../../engine/serving-lock.ts'
import { migrate } from '../../../schema/migrations/migrate.ts'
import { closeFolderOf, createFolderOf, openDatabase } from '../../../schema/sqlite/open.ts'
import { DatabaseRefused } from '../../../schema/sql/failure.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'

const folder = temporaryFolder()

/** The one line with which a path is refused. */
function refusalOf(path: string): string {
  try {
    openDatabase(path).close()
  } catch (error) {
    if (error instanceof DatabaseRefused) return error.message
    throw error
  }
  return 'opened'
}

test('folder, database, journal, lock and copies are for their owner only, also where an earlier version left them open', () => {
  const path = join(folder, 'private', 'tollgate.db')
  createFolderOf(path)
  expect(statSync(dirname(path)).mode & 0o777).toBe(0o700)
  const files = ['', '-wal', '.lock', '.calls-1', '.v43-2026'].map((end) => `${path}${end}`)
  for (const file of files) writeFileSync(file, '')
  writeFileSync(join(dirname(path), 'of-others'), '')
  for (const name of readdirSync(dirname(path))) chmodSync(join(dirname(path), name), 0o644)
  openDatabase(path, { isNew: true }).close()
  const made = join(folder, 'private', 'made.db')
  openDatabase(made).close()
  lockForServing(made).release()
  for (const file of [...files, made, `${made}.lock`].filter((each) => existsSync(each)))
    expect([file, statSync(file).mode & 0o777]).toEqual([file, 0o600])
  expect(statSync(join(dirname(path), 'of-others')).mode & 0o777).toBe(0o644)
})

test('the own folder of the program is closed to others at a start; any other, and one behind a link, is left and told', () => {
  const make = (mode: number): string => {
    const made = mkdtempSync(join(folder, 'mode-'))
    chmodSync(made, mode)
    return join(made, 'tollgate.db')
  }
  const modeOf = (path: string): number => statSync(dirname(path)).mode & 0o7777
  const own = make(0o755)
  expect([closeFolderOf(own, true), modeOf(own)]).toEqual([undefined, 0o700])
  const chosen = make(0o755)
  const told = expect.stringContaining(
    `others may read the folder of the database, ${dirname(chosen)}`,
  )
  expect([closeFolderOf(chosen, false), modeOf(chosen)]).toEqual([told, 0o755])
  const ofGroup = make(0o750)
  expect([closeFolderOf(ofGroup, false), modeOf(ofGroup)]).toEqual([undefined, 0o750])
  const shared = make(0o1777)
  const link = join(folder, 'data')
  symlinkSync(dirname(shared), link)
  expect(closeFolderOf(join(link, 'tollgate.db'), true)).toContain('others may read')
  expect(modeOf(shared)).toBe(0o1777)
})

test('a database is made in WAL mode, with full syncs and foreign keys', () => {
  const path = join(folder, 'new', 'deep', 'tollgate.db')
  createFolderOf(path)
  const store = openDatabase(path)
  const pragma = (name: string): unknown => store.sqlite.pragma(name, { simple: true })
  expect(['journal_mode', 'synchronous', 'foreign_keys', 'busy_timeout'].map(pragma)).toEqual([
    'wal',
    2,
    1,
    5_000,
  ])
  store.close()
})

test('a folder that does not exist is not made, and one that cannot be made is refused', () => {
  const missing = join(folder, 'missing')
  expect(refusalOf(join(missing, 'tollgate.db'))).toBe(
    `cannot use database ${missing}/tollgate.db: the folder ${missing} does not exist; create it, or use --create`,
  )
  expect(existsSync(missing)).toBe(false)
  expect(() => createFolderOf('/proc/no/such/tollgate.db')).toThrow(
    /^cannot use database \/proc\/no\/such\/tollgate\.db: ENOENT/,
  )
  expect(refusalOf(folder)).toBe(`cannot use database ${folder}: not a file`)
})

/** A file of this program, to be harmed. */
function migrated(path: string): void {
  const store = openDatabase(path)
  migrate(store.sqlite, 0)
  store.close()
}

const sqlOn = (path: string, sql: string): void => {
  const other = new Sqlite(path)
  other.exec(sql)
  other.close()
}

const unreleased = (version: number) => (path: string) =>
  sqlOn(path, `CREATE TABLE schema_migration (version INTEGER); PRAGMA user_version = ${version}`)

test.each([
  [
    'no database',
    (path: string) => writeFileSync(path, 'Dear database,\n'.repeat(100)),
    'the file is not an SQLite database',
  ],
  [
    'of another program',
    (path: string) => sqlOn(path, 'CREATE TABLE song (title TEXT)'),
    'it belongs to another program',
  ],
  [
    'of a newer version',
    (path: string) => {
      migrated(path)
      sqlOn(path, 'PRAGMA user_version = 4711')
    },
    /it has schema version 4711, this program knows up to \d+; use a newer Tollgate$/,
  ],
  ['of an unreleased version', unreleased(1), 'it was made by an unreleased version of Tollgate'],
  [
    'of the last unreleased version',
    unreleased(49),
    'unreleased version of Tollgate; move it away',
  ],
  [
    'damaged',
    (path: string) => {
      migrated(path)
      const bytes = readFileSync(path)
      writeFileSync(path, bytes.fill(0xa5, 4_096, bytes.length))
    },
    '',
  ],
  [
    'without its end',
    (path: string) => {
      migrated(path)
      writeFileSync(path, readFileSync(path).subarray(0, 10_000))
    },
    '',
  ],
])('a file that is %s is refused in one line and not touched', (what, harm, reason) => {
  const path = join(folder, `${what.replaceAll(' ', '-')}.db`)
  harm(path)
  const before = readFileSync(path)
  const line = refusalOf(path)
  expect(line).toMatch(/^cannot use database \S+: [^\n]+$/)
  expect(line).toMatch(reason)
  expect(readFileSync(path).equals(before)).toBe(true)
  expect(existsSync(`${path}.key`)).toBe(false)
})

test('a statement finds its rows by their keys, although the table was all but empty at the last stop', () => {
  const path = join(folder, 'grown.db')
  const first = openDatabase(path)
  migrate(first.sqlite, 0)
  first.sqlite.pragma('foreign_keys = off')
  first.sqlite.exec(
    `INSERT INTO ledger_entry (wallet_id, kind, amount_micros, balance_after_micros, ref, actor, created_at)
     VALUES (1, 'debit', -1, 0, 'a', 'ocs', 0); ANALYZE`,
  )
  first.close()
  const { sqlite, close } = openDatabase(path)
  const plan = sqlite
    .prepare<[], { detail: string }>(
      `EXPLAIN QUERY PLAN WITH given (ref) AS (VALUES ('a'), ('b'))
       SELECT wallet_id FROM ledger_entry WHERE kind = 'debit' AND ref IN (SELECT ref FROM given)`,
    )
    .all()
  expect(plan.map(({ detail }) => detail).join()).toContain('SEARCH ledger_entry USING INDEX')
  close()
})
