import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { runCommandLine } from '../../../engine/commands/index.ts'
import { lockForServing } from '../../../engine/serving-lock.ts'
import { copyDatabase } from '../../../schema/sqlite/copy.ts'
import { newestVersion } from '../../../schema/migrations/index.ts'
import { openDatabase } from '../../../schema/sqlite/open.ts'
import { fakeWorld } from './fake-world.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'

const folder = temporaryFolder()

async function run(path: string, words: readonly string[], more: Record<string, string> = {}) {
  const world = fakeWorld({ DATABASE_PATH: path, ...more })
  const code = await runCommandLine(words, world)
  return { code, printed: world.printed, complaints: world.complaints }
}

async function migrated(name: string): Promise<string> {
  const path = join(folder, name)
  await run(path, ['migrate'])
  return path
}

/** Makes a wallet whose balance is not what its ledger says. */
function losesMoney(path: string): void {
  const store = openDatabase(path)
  store.sqlite.exec(`
    INSERT INTO customer (id, name, created_at, updated_at) VALUES (1, 'acme', 0, 0);
    INSERT INTO wallet (id, customer_id, currency, balance_micros, updated_at) VALUES (5, 1, 'USD', 700, 0);
    INSERT INTO ledger_entry (wallet_id, kind, amount_micros, balance_after_micros, ref, actor, created_at)
      VALUES (5, 'topup', 1000, 1000, 'r', 'test', 0);`)
  store.close()
}

test('migrate creates the database, and repeated it changes nothing', async () => {
  const path = join(folder, 'new', 'a.db')
  const first = await run(path, ['migrate', '--create'])
  expect(first.code).toBe(0)
  expect(first.printed).toContain(`${path} has schema version ${newestVersion}`)
  expect(first.printed.length).toBe(newestVersion + 1)

  const again = await run(path, ['migrate'])
  expect(again).toMatchObject({ code: 0, printed: [`${path} has schema version ${newestVersion}`] })
})

test('a database of a newer version is refused with exit code 2, in one line, untouched', async () => {
  const path = await migrated('newer.db')
  const store = openDatabase(path)
  store.sqlite.pragma('user_version = 9999')
  store.close()
  const before = statSync(path).mtimeMs
  const world = await run(path, ['migrate'])
  expect(world).toMatchObject({
    code: 2,
    complaints: [expect.stringContaining('it has schema version 9999')],
  })
  expect(statSync(path).mtimeMs).toBe(before)
})

test('a backup is whole, while the database is open elsewhere', async () => {
  const path = await migrated('busy.db')
  const open = openDatabase(path)
  open.sqlite.exec("INSERT INTO setting (name, value) VALUES ('answer', '42')")
  const file = join(folder, 'copy.db')
  const world = await run(path, ['backup', file])
  expect(world.code).toBe(0)
  open.close()
  // Secrets are in it, as in the database.
  expect(statSync(file).mode & 0o777).toBe(0o600)

  const copy = openDatabase(file)
  expect(copy.sqlite.prepare('SELECT name, value FROM setting').all()).toContainEqual({
    name: 'answer',
    value: '42',
  })
  copy.close()
})

test('without the key of its secrets a database is refused with exit code 2, in one line', async () => {
  const path = await migrated('keyless.db')
  rmSync(`${path}.key`)
  for (const words of [['migrate'], ['serve'], ['key', 'create', '--name', 'x']]) {
    const world = await run(path, words)
    expect(world.code).toBe(2)
    expect(world.complaints).toEqual([
      expect.stringMatching(/their key .*keyless\.db\.key is missing; put that file back/),
    ])
  }
  const checked = await run(path, ['check'])
  expect(checked.code).toBe(1)
  expect(checked.printed.at(-1)).toContain('their key')
  expect(existsSync(`${path}.key`)).toBe(false)
})

test('a backup is never written over another file', async () => {
  const path = await migrated('kept.db')
  const file = join(folder, 'precious')
  writeFileSync(file, 'mine')
  const world = await run(path, ['backup', file])
  expect(world).toMatchObject({
    code: 2,
    complaints: [`tollgate: ${file} exists; a backup is never written over`],
  })
})

test('a backup that fails leaves nothing behind', async () => {
  const path = await migrated('whole.db')
  const file = join(folder, 'full.db')
  const store = openDatabase(path)
  // Stands for a full disk: SQLite refuses once the file is there.
  store.sqlite.exec('BEGIN')
  expect(() => copyDatabase(store, file)).toThrow('cannot VACUUM')
  store.close()
  expect([existsSync(file), existsSync(`${file}.unfinished`)]).toEqual([false, false])
})

test('check says of an empty file that it has to be migrated', async () => {
  const path = join(folder, 'empty.db')
  writeFileSync(path, '')
  const world = await run(path, ['check'])
  expect(world.code).toBe(1)
  expect(world.printed.at(-1)).toMatch(/^database: schema version 0 is older .*: run migrate$/)
  expect(world.complaints).toEqual([])
})

test.each([
  [['--tenant', 'unknown'], '--tenant: '],
  [['--expires-at', '2020-01-01T00:00:00Z'], '--expires-at: must lie in the future'],
])('a key that cannot be made with %j names the option', async (options, complaint) => {
  const world = fakeWorld({ DATABASE_PATH: await migrated('keys.db') })
  expect(await runCommandLine(['key', 'create', '--name', 'k', ...options], world)).toBe(1)
  expect(world.complaints).toEqual([expect.stringContaining(`tollgate: ${complaint}`)])
  expect(world.printed).toEqual([])
})

test('check finds a wallet whose balance is not the sum of its ledger', async () => {
  const path = await migrated('money.db')
  const whole = await run(path, ['check'])
  expect(whole).toMatchObject({
    code: 0,
    printed: ['settings: right', `database: ${path} is whole`],
  })

  losesMoney(path)
  const broken = await run(path, ['check'])
  expect(broken.code).toBe(1)
  expect(broken.printed).toContain(
    'database: wallet 5 holds 700 micro-units, its ledger adds up to 1000',
  )
})

/** A database with a password of a carrier and a secret of an endpoint in it, sealed. */
async function withSecrets(name: string): Promise<string> {
  const path = await migrated(name)
  const store = openDatabase(path)
  store.sqlite.exec(`
    INSERT INTO carrier (id, name, auth_type, created_at, updated_at)
      VALUES (1, 'north', 'register', 0, 0), (2, 'plain', 'ip', 0, 0);
    INSERT INTO webhook_endpoint (id, url, events, secret, created_at, updated_at)
      VALUES (7, 'https://crm.example/', '["*"]', '', 0, 0);`)
  const { secrets, sqlite } = store
  const seal = (table: string, column: string, row: number) =>
    sqlite
      .prepare(`UPDATE ${table} SET ${column} = ? WHERE id = ?`)
      .run(secrets.seal({ table, column, row }, `${table} secret`), row)
  seal('carrier', 'auth_password', 1)
  seal('webhook_endpoint', 'secret', 7)
  store.close()
  return path
}

test('without its lost key a database can be used again, and what has to be entered again is named', async () => {
  const path = await withSecrets('lost-key.db')
  const environment = { DATABASE_PATH: path }
  rmSync(`${path}.key`)
  const refused = fakeWorld(environment)
  expect(await runCommandLine(['migrate'], refused)).toBe(2)
  expect(refused.complaints[0]).toContain('if it is lost: tollgate secrets reset')

  const world = fakeWorld(environment)
  expect(await runCommandLine(['secrets', 'reset'], world)).toBe(0)
  expect(world.printed).toEqual([
    expect.stringContaining(`${path}.lost-key-20261120T000000Z`),
    expect.stringMatching(/^carrier north: /),
    expect.stringMatching(/^webhook 7 \(https:\/\/crm.example\/\): .*rotate/),
    expect.stringContaining('log in again'),
    expect.stringContaining(`${path}.key`),
  ])
  expect(await runCommandLine(['check'], fakeWorld(environment))).toBe(0)
  const { sqlite, secrets, close } = openDatabase(path)
  expect(sqlite.prepare('SELECT is_active FROM carrier ORDER BY id').pluck().all()).toEqual([0, 1])
  expect(sqlite.prepare('SELECT auth_password FROM carrier WHERE id = 1').pluck().get()).toBe(null)
  const sealed = sqlite.prepare('SELECT is_active, secret FROM webhook_endpoint').get()
  const { is_active, secret } = sealed as { is_active: number; secret: string }
  const place = { table: 'webhook_endpoint', column: 'secret', row: 7 }
  expect([is_active, secrets.open(place, secret)]).toEqual([0, expect.stringMatching(/^whsec_/)])
  close()
})

test('the copy that a reset keeps opens with the key, should it be found', async () => {
  const path = await withSecrets('found-key.db')
  const key = readFileSync(`${path}.key`, 'utf8')
  const world = fakeWorld({ DATABASE_PATH: path, SECRET_KEY: 'A'.repeat(43) })
  expect(await runCommandLine(['secrets', 'reset'], world)).toBe(0)
  const copy = openDatabase(`${path}.lost-key-20261120T000000Z`, { secretKey: key })
  const stored = copy.sqlite.prepare('SELECT auth_password FROM carrier WHERE id = 1').pluck().get()
  const place = { table: 'carrier', column: 'auth_password', row: 1 }
  expect(copy.secrets.open(place, String(stored))).toBe('carrier secret')
  copy.close()
})

test('a reset changes nothing where the key is right, and nothing of a database that is served', async () => {
  const path = await withSecrets('right-key.db')
  const world = fakeWorld({ DATABASE_PATH: path })
  const before = readFileSync(path)
  expect(await runCommandLine(['secrets', 'reset'], world)).toBe(0)
  expect(world.printed).toEqual([expect.stringContaining('nothing changed')])
  expect(readFileSync(path).equals(before)).toBe(true)

  rmSync(`${path}.key`)
  const lock = lockForServing(path)
  const served = await run(path, ['secrets', 'reset'])
  expect(served.code).toBe(2)
  expect(served.complaints[0]).toContain('another tollgate process is serving it')
  lock.release()
})
