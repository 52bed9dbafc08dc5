import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { migrate } from '../../../schema/migrations/migrate.ts'
import { openDatabase, type OpenOptions } from '../../../schema/sqlite/open.ts'
import type { LocalStore } from '../../../schema/storage/store.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'

const folder = temporaryFolder()
const place = { table: 'carrier', column: 'auth_password', row: 1 }
const hexKey = '0123456789abcdef'.repeat(4)

function open(name: string, options: OpenOptions = {}): LocalStore {
  const store = openDatabase(join(folder, name), options)
  migrate(store.sqlite, 0)
  return store
}

function protect(name: string, options: OpenOptions = {}): number {
  const store = open(name, options)
  try {
    return store.secrets.protect()
  } finally {
    store.close()
  }
}

const insertCarrier = (store: LocalStore, password: string | null): void =>
  void store.sqlite
    .prepare(
      `INSERT INTO carrier (name, auth_type, auth_password, created_at, updated_at)
       VALUES ('transit', 'digest', ?, 0, 0)`,
    )
    .run(password)

test('the first start makes a key of 32 bytes that only its owner may read; the next one uses it', () => {
  protect('new.db')
  const file = join(folder, 'new.db.key')
  expect(statSync(file).mode & 0o777).toBe(0o600)
  const key = readFileSync(file, 'utf8')
  expect(Buffer.from(key, 'base64')).toHaveLength(32)

  const store = open('new.db')
  const sealed = store.secrets.seal(place, 'x')
  store.close()
  const again = open('new.db')
  expect(again.secrets.open(place, sealed)).toBe('x')
  again.close()
  expect(readFileSync(file, 'utf8')).toBe(key)
  expect(readdirSync(folder).filter((name) => name.startsWith('new.db.key'))).toHaveLength(1)
})

test('what an earlier version stored in clear is encrypted at the start, and leaves no trace', () => {
  const store = open('old.db')
  insertCarrier(store, 'carrier in clear')
  store.sqlite.exec(`
    INSERT INTO webhook_endpoint (url, events, secret, previous_secret, created_at, updated_at)
      VALUES ('https://x.example', '["*"]', 'whsec_in_clear', 'whsec_before', 0, 0);
    INSERT INTO setting (name, value) VALUES ('jwt_secret', 'token in clear'), ('other', 'stays');`)
  expect(store.secrets.protect()).toBe(4)
  expect(store.secrets.protect()).toBe(0)

  const carrier = store.sqlite.prepare<[], string>('SELECT auth_password FROM carrier').pluck()
  expect(store.secrets.open(place, carrier.get() ?? '')).toBe('carrier in clear')
  const other = store.sqlite.prepare("SELECT value FROM setting WHERE name = 'other'").pluck()
  expect(other.get()).toBe('stays')
  for (const name of readdirSync(folder).filter((each) => each.startsWith('old.db')))
    expect(readFileSync(join(folder, name), 'latin1')).not.toMatch(/in.clear|whsec_/)
  store.close()
})

test('with another key a database with secrets is refused', () => {
  protect('mixed.db')
  protect('another.db')
  const key = readFileSync(join(folder, 'mixed.db.key'), 'utf8')
  writeFileSync(join(folder, 'mixed.db.key'), readFileSync(join(folder, 'another.db.key')))
  expect(() => protect('mixed.db')).toThrow(/mixed\.db\.key is not the key that its secrets/)
  expect(() => protect('mixed.db', { secretKey: hexKey })).toThrow(/SECRET_KEY is not the key/)
  // The right one as a setting wins over the wrong file.
  expect(protect('mixed.db', { secretKey: key.trim() })).toBe(0)
})

test('a damaged key file is refused', () => {
  protect('damaged.db')
  writeFileSync(join(folder, 'damaged.db.key'), 'not a key\n')
  expect(() => protect('damaged.db')).toThrow(/does not hold 32 bytes/)
})

test('a key that is set needs no file, and may be written in hexadecimal digits', () => {
  protect('set.db', { secretKey: hexKey })
  expect(existsSync(join(folder, 'set.db.key'))).toBe(false)
  const asBase64 = Buffer.from(hexKey, 'hex').toString('base64')
  expect(protect('set.db', { secretKey: asBase64 })).toBe(0)
})
