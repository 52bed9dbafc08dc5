import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { expect, test } from 'vitest'
import { migrate } from '../../schema/migrate.ts'
import { migrations } from '../../schema/migrations/index.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const folder = temporaryFolder()
const first = { version: 1, name: 'one', sql: 'CREATE TABLE one (a TEXT) STRICT' }
const second = { version: 2, name: 'two', sql: 'CREATE TABLE two (a TEXT) STRICT' }

test('the migrations of this program are numbered without gaps, and apply to an empty database', () => {
  expect(migrations.map(({ version }) => version)).toEqual(migrations.map((_, index) => index + 1))
  const sqlite = new Sqlite(':memory:')
  expect(migrate(sqlite, 5)).toEqual({
    from: 0,
    to: migrations.length,
    applied: migrations.map(({ name }) => name),
    copy: null,
  })
  expect(migrate(sqlite, 6)).toMatchObject({ from: migrations.length, applied: [] })
})

test('every table is STRICT', () => {
  const sqlite = new Sqlite(':memory:')
  migrate(sqlite, 0)
  const loose = sqlite.prepare(
    "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND strict = 0 AND name NOT LIKE 'sqlite_%'",
  )
  expect(loose.pluck().all()).toEqual([])
})

test('before existing data is migrated, a copy of it is made', () => {
  const sqlite = new Sqlite(join(folder, 'live.db'))
  migrate(sqlite, 0, [first])
  sqlite.exec("INSERT INTO one VALUES ('kept')")
  const report = migrate(sqlite, Date.UTC(2026, 0, 2), [first, second])
  expect(report).toMatchObject({ from: 1, to: 2, applied: ['two'] })
  const copy = new Sqlite(report.copy ?? '', { readonly: true })
  expect(copy.prepare('SELECT a FROM one').pluck().all()).toEqual(['kept'])
  expect(copy.pragma('user_version', { simple: true })).toBe(1)
  expect(statSync(report.copy ?? '').mode & 0o777).toBe(0o600)
  expect(sqlite.prepare('SELECT a FROM one').pluck().all()).toEqual(['kept'])
})

test('a migration that fails changes nothing, and the next attempt goes on from there', () => {
  const sqlite = new Sqlite(':memory:')
  const broken = { ...second, sql: `${second.sql}; INSERT INTO nowhere VALUES (1)` }
  expect(() => migrate(sqlite, 0, [first, broken])).toThrow('nowhere')
  expect(sqlite.pragma('user_version', { simple: true })).toBe(1)
  expect(() => sqlite.prepare('SELECT * FROM two')).toThrow('no such table')
  expect(migrate(sqlite, 0, [first, second])).toMatchObject({ from: 1, applied: ['two'] })
})

test('a database of a newer program is refused', () => {
  const sqlite = new Sqlite(':memory:')
  migrate(sqlite, 0, [first, second])
  expect(() => migrate(sqlite, 0, [first])).toThrow(
    'it has schema version 2, this program knows up to 1',
  )
})

test('a database of an unreleased version is refused, and not as one of a newer program', () => {
  const sqlite = new Sqlite(':memory:')
  migrate(sqlite, 0, [{ ...first, name: 'calls-and-money' }, second])
  expect(() => migrate(sqlite, 0, [first])).toThrow(
    'it was made by an unreleased version of Tollgate; move it away and start again, or keep using the version that made it',
  )
})

test('a database that was migrated by an altered program is refused before anything is done', () => {
  const path = join(folder, 'altered.db')
  const sqlite = new Sqlite(path)
  migrate(sqlite, 0, [{ ...first, sql: 'CREATE TABLE one (b TEXT) STRICT' }])
  expect(() => migrate(sqlite, 0, [first, second])).toThrow(
    "migration 1 differs from this program's",
  )
  expect(sqlite.pragma('user_version', { simple: true })).toBe(1)
  expect(existsSync(`${path}.v1-19700101T000000000Z`)).toBe(false)
})
