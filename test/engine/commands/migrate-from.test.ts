import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { runCommandLine } from '../../../engine/commands/index.ts'
import { lockForServing } from '../../../engine/serving-lock.ts'
import { openStore } from '../../../schema/postgres/open.ts'
import { openDatabase } from '../../../schema/sqlite/open.ts'
import { first } from '../../../schema/sql/query.ts'
import { freshDatabase, hasPostgres } from '../../support/postgres.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { fakeWorld } from './fake-world.ts'

const folder = temporaryFolder()
const place = { table: 'carrier', column: 'auth_password', row: 1 }

/** A database with one carrier, whose password is encrypted. */
async function installation(name: string): Promise<string> {
  const path = join(folder, name)
  await runCommandLine(['migrate'], fakeWorld({ DATABASE_PATH: path }))
  const store = openDatabase(path)
  store.sqlite
    .prepare(
      `INSERT INTO carrier (id, name, auth_password, created_at, updated_at) VALUES (1, 'c', ?, 0, 0)`,
    )
    .run(store.secrets.seal(place, 'secret'))
  store.close()
  return path
}

const nowhere = 'postgres://127.0.0.1:1/tollgate'

describe.runIf(hasPostgres)('migrate --from', () => {
  test('moves an installation, and its secrets stay readable with their key', async () => {
    const path = await installation('moved.db')
    const { url, drop } = await freshDatabase('empty')
    onTestFinished(drop)
    const world = fakeWorld({ DATABASE_URL: url })
    expect(await runCommandLine(['migrate', '--from', path], world)).toBe(0)
    expect(world.printed).toContain('carrier: 1 rows in both')
    expect(world.printed).toContain('sum of wallet.balance_micros: 0 micro-units in both')
    expect(world.printed.at(-1)).toBe(`the key of the secrets stays ${path}.key`)
    expect(world.complaints).toContain('carrier: 1 rows')

    const store = await openStore(url, { now: 0, secretKey: undefined, keyFile: `${path}.key` })
    const row = await first(store, store.db.selectFrom('carrier').select('auth_password'))
    expect(store.secrets.open(place, row?.auth_password ?? '')).toBe('secret')
    await store.close()

    const again = fakeWorld({ DATABASE_URL: url })
    expect(await runCommandLine(['migrate', '--from', path], again)).toBe(2)
    expect(again.complaints).toEqual([
      expect.stringMatching(/cannot move to postgres:.* not empty/),
    ])
  })
})

test('without DATABASE_URL, or without the file, it is wrong usage', async () => {
  const path = await installation('usage.db')
  expect(await runCommandLine(['migrate', '--from', path], fakeWorld({}))).toBe(2)
  const world = fakeWorld({ DATABASE_URL: nowhere })
  expect(await runCommandLine(['migrate', '--from', join(folder, 'no.db')], world)).toBe(2)
})

test('a database that is served, or whose calls are not stored yet, is refused', async () => {
  const path = await installation('served.db')
  const moved = async (): Promise<string> => {
    const world = fakeWorld({ DATABASE_URL: nowhere })
    expect(await runCommandLine(['migrate', '--from', path], world)).toBe(2)
    return world.complaints.join('')
  }
  const lock = lockForServing(path)
  expect(await moved()).toContain('served')
  lock.release()
  writeFileSync(`${path}.calls-1`, '')
  expect(await moved()).toContain('start Tollgate once on this database, and stop it')
  rmSync(`${path}.calls-1`)
})
