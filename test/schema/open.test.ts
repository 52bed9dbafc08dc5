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
import { lockForServing } from '../../engine/serving-lock.ts'
import { migrate } from '../../schema/migrate.ts'
import { closeFolderOf, createFolderOf, openDatabase } from '../../schema/open.ts'
import { DatabaseRefused } from '../../schema/sql/failure.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

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
  openDatabase(path).close()
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

test('a database in a folder that does not exist is refused, and no folder is made', () => {
  expect(refusalOf(join(folder, 'missing', 'tollgate.db'))).toBe(
    `cannot use database ${join(folder, 'missing', 'tollgate.db')}: the folder ${join(folder, 'missing')} does not exist; create it, or use --create`,
  )
  expect(existsSync(join(folder, 'missing'))).toBe(false)
})

test('a folder that cannot be made is refused at once', () => {
  expect(() => createFolderOf('/proc/no/such/tollgate.db')).toThrow(
    /^cannot use database \/proc\/no\/such\/tollgate\.db: ENOENT/,
  )
})

test('only its owner may read a new database, and what SQLite puts beside it', () => {
  const path = join(folder, 'private.db')
  const store = openDatabase(path)
  migrate(store.sqlite, 0)
  for (const file of [path, `${path}-wal`]) expect(statSync(file).mode & 0o777).toBe(0o600)
  store.close()
})

test('closing twice is closing once', () => {
  const store = openDatabase(':memory:')
  store.close()
  expect(() => store.close()).not.toThrow()
})

test('a file that is no database is refused in one line and not touched', () => {
  const path = join(folder, 'letter.db')
  writeFileSync(path, 'Dear database,\n'.repeat(100))
  expect(refusalOf(path)).toBe(`cannot use database ${path}: the file is not an SQLite database`)
  expect(readFileSync(path, 'utf8')).toBe('Dear database,\n'.repeat(100))
  expect(readdirSync(folder).filter((name) => name.startsWith('letter'))).toEqual(['letter.db'])
})

test('a folder is refused', () => {
  expect(refusalOf(folder)).toBe(`cannot use database ${folder}: not a file`)
})

test('the database of another program is refused and not touched', () => {
  const path = join(folder, 'music.db')
  const other = new Sqlite(path)
  other.exec('CREATE TABLE song (title TEXT)')
  other.close()
  const before = readFileSync(path)
  expect(refusalOf(path)).toBe(`cannot use database ${path}: it belongs to another program`)
  expect(readFileSync(path).equals(before)).toBe(true)
})

test('a database of a newer version is refused and not touched', () => {
  const path = join(folder, 'newer.db')
  const newer = openDatabase(path)
  migrate(newer.sqlite, 0)
  newer.sqlite.pragma('user_version = 4711')
  newer.close()
  const before = readFileSync(path)
  expect(refusalOf(path)).toMatch(
    /it has schema version 4711, this program knows up to \d+; use a newer Tollgate$/,
  )
  expect(readFileSync(path).equals(before)).toBe(true)
})

test.each([1, 2, 49])(
  'a database of an unreleased version, at %i, is refused and not touched',
  (version) => {
    const path = join(folder, `unreleased-${version}.db`)
    const older = new Sqlite(path)
    older.exec(`CREATE TABLE schema_migration (version INTEGER); PRAGMA user_version = ${version}`)
    older.close()
    const before = readFileSync(path)
    expect(refusalOf(path)).toBe(
      `cannot use database ${path}: it was made by an unreleased version of Tollgate; move it away and start again, or keep using the version that made it`,
    )
    expect(readFileSync(path).equals(before)).toBe(true)
  },
)

test('a damaged database is refused in one line', () => {
  const path = join(folder, 'damaged.db')
  const store = openDatabase(path)
  migrate(store.sqlite, 0)
  store.close()
  const bytes = readFileSync(path)
  bytes.fill(0xa5, 4_096, bytes.length)
  writeFileSync(path, bytes)
  expect(refusalOf(path)).toMatch(/^cannot use database \S+: [^\n]+$/)
})

test('a database that lost its end is refused in one line', () => {
  const path = join(folder, 'short.db')
  const store = openDatabase(path)
  migrate(store.sqlite, 0)
  store.close()
  writeFileSync(path, readFileSync(path).subarray(0, 10_000))
  expect(refusalOf(path)).toMatch(/^cannot use database \S+: [^\n]+$/)
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
