/** The promises of both databases about migrations, and those of SQLite alone. */
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { describe, expect, onTestFinished, test } from 'vitest'
import { migrate, migratePostgres } from '../../../schema/migrations/migrate.ts'
import { migrations } from '../../../schema/migrations/index.ts'
import { PostgresStatements } from '../../../schema/sql/postgres-statements.ts'
import { freshDatabase, hasPostgres } from '../../support/postgres.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'

const folder = temporaryFolder()
const first = { version: 1, name: 'one', sql: 'CREATE TABLE one (a TEXT) STRICT;' }
const second = { version: 2, name: 'two', sql: 'CREATE TABLE two (a TEXT) STRICT;' }

type Known = readonly { readonly version: number; readonly name: string; readonly sql: string }[]

/** A database without tables. */
async function onServer() {
  const database = await freshDatabase('empty')
  const statements = new PostgresStatements(database)
  onTestFinished(async () => {
    await statements.close()
    await database.drop()
  })
  return {
    run: (known?: Known) => migratePostgres(statements, 'shared', 5, known),
    execute: (sql: string) => statements.execute(sql),
  }
}
async function inMemory() {
  const sqlite = new Sqlite(':memory:')
  return {
    run: async (known?: Known) => migrate(sqlite, 5, known),
    execute: async (sql: string) => void sqlite.exec(sql),
  }
}

describe.each([
  { database: 'SQLite', open: inMemory },
  ...(hasPostgres ? [{ database: 'PostgreSQL', open: onServer }] : []),
])('on $database', ({ open }) => {
  test('all migrations apply in their order, once', async () => {
    const { run } = await open()
    const to = migrations.length
    expect(migrations.map(({ version }) => version)).toEqual(migrations.map((_, at) => at + 1))
    const applied = migrations.map(({ name }) => name)
    expect(await run()).toMatchObject({ from: 0, to, applied })
    expect(await run()).toMatchObject({ from: to, to, applied: [] })
  })

  test('a migration that fails changes nothing', async () => {
    const { run } = await open()
    const broken = { ...second, sql: `${second.sql} INSERT INTO nowhere VALUES (1);` }
    await expect(run([first, broken])).rejects.toThrow('nowhere')
    await run([first])
    expect(await run([first, second])).toMatchObject({ from: 1, to: 2, applied: ['two'] })
  })

  test.each([
    [
      'of a newer program',
      [first, second],
      [first],
      'has schema version 2, this program knows up to 1',
    ],
    [
      'that was migrated by an altered program',
      [{ ...first, sql: 'CREATE TABLE one (b TEXT) STRICT;' }],
      [first, second],
      "migration 1 differs from this program's",
    ],
    [
      'of an unreleased version',
      [{ ...first, name: 'calls-and-money' }, second],
      [first],
      'it was made by an unreleased version of Tollgate; move it away and start again',
    ],
  ])('a database %s is refused', async (_, made, known, refusal) => {
    const { run } = await open()
    await run(made)
    await expect(run(known)).rejects.toThrow(refusal)
  })
})

describe.runIf(hasPostgres)('on PostgreSQL alone', () => {
  test('two instances that start at once migrate once', async () => {
    const { run } = await onServer()
    const reports = await Promise.all([run(), run(), run()])
    const applied = reports.map((report) => report.applied.length).toSorted((a, b) => a - b)
    expect(applied).toEqual([0, 0, migrations.length])
  })

  test('the database of another program is refused', async () => {
    const { run, execute } = await onServer()
    await execute('CREATE TABLE song (title text)')
    await expect(run()).rejects.toThrow('cannot use database shared: it belongs to another program')
  })
})

describe('on SQLite alone', () => {
  test('every table is STRICT', () => {
    const sqlite = new Sqlite(':memory:')
    migrate(sqlite, 0)
    const loose = sqlite.prepare(
      "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND strict = 0 AND name NOT LIKE 'sqlite_%'",
    )
    expect(loose.pluck().all()).toEqual([])
  })

  test('before existing data is migrated, a copy of it is made; where nothing is migrated, none', () => {
    const sqlite = new Sqlite(join(folder, 'live.db'))
    migrate(sqlite, 0, [first])
    sqlite.exec("INSERT INTO one VALUES ('kept')")
    const altered = { ...first, sql: 'CREATE TABLE one (b TEXT) STRICT;' }
    expect(() => migrate(sqlite, 0, [altered, second])).toThrow('differs')
    expect(readdirSync(folder)).toEqual(['live.db'])
    const { copy } = migrate(sqlite, Date.UTC(2026, 0, 2), [first, second])
    const before = new Sqlite(copy ?? '', { readonly: true })
    expect(before.prepare('SELECT a FROM one').pluck().all()).toEqual(['kept'])
    expect(before.pragma('user_version', { simple: true })).toBe(1)
    expect(statSync(copy ?? '').mode & 0o777).toBe(0o600)
    expect(sqlite.prepare('SELECT a FROM one').pluck().all()).toEqual(['kept'])
  })
})
