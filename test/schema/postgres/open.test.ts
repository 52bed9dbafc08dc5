import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { migrations, newestVersion } from '../../../schema/migrations/index.ts'
import { openStore, readServer, type ServerOptions } from '../../../schema/postgres/open.ts'
import { all, first, insert, transaction } from '../../../schema/sql/query.ts'
import { PostgresStatements } from '../../../schema/sql/postgres-statements.ts'
import { freshDatabase, hasPostgres } from '../../support/postgres.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'

const folder = temporaryFolder()
const key = Buffer.alloc(32, 7).toString('base64')

describe.runIf(hasPostgres)('a database on a server', () => {
  let url: string
  const drops: (() => Promise<void>)[] = []
  beforeEach(async () => {
    const database = await freshDatabase('empty')
    url = database.url
    drops.push(database.drop)
  })
  afterAll(async () => {
    for (const drop of drops) await drop()
  })

  async function opened(options: Partial<ServerOptions> = {}) {
    const store = await openStore(url, {
      ...options,
      now: 5,
      secretKey: options.secretKey,
      keyFile: options.keyFile ?? join(folder, 'missing.key'),
    })
    onTestFinished(() => store.close())
    return store
  }

  test('it is migrated when it is opened, and queries built by its Kysely run on it', async () => {
    const store = await opened({ secretKey: key })
    expect(store.migrated).toMatchObject({ from: 0, to: newestVersion })
    const tenant = { slug: 'acme', name: 'Acme', created_at: 5 }
    const id = await transaction(store, () =>
      insert(store, store.db.insertInto('tenant').values(tenant).returning('id')),
    )
    const user = { username: 'ann', password_hash: '-', role: 'admin' as const, tenant_id: id }
    await insert(
      store,
      store.db
        .insertInto('user')
        .values({ ...user, created_at: 5, updated_at: 5 })
        .returning('id'),
    )
    expect(await first(store, store.db.selectFrom('tenant').selectAll())).toMatchObject({
      id,
      is_active: 1,
      codecs: null,
    })
    expect(await all(store, store.db.selectFrom('user').select(['username', 'tenant_id']))).toEqual(
      [{ username: 'ann', tenant_id: id }],
    )
  })

  test('a database that nodes serve from is not migrated under them', async () => {
    const { statements } = await opened({ secretKey: key })
    await statements.execute(`INSERT INTO node VALUES ('sbc-2', 1, 'x', 'http://sbc-2', '', '1', 'serving', 0, 0,
      extract(epoch FROM clock_timestamp()) * 1000)`)
    const later = { version: newestVersion + 1, name: 'later', sql: 'CREATE TABLE later (a TEXT);' }
    const known = [...migrations, later]
    await expect(opened({ secretKey: key, known })).rejects.toThrow(
      '(sbc-2), and start this one then',
    )
    await statements.execute("UPDATE node SET state = 'stopped'")
    expect((await opened({ secretKey: key, known })).migrated.applied).toEqual(['later'])
  })

  test('a database of an unreleased version is refused before its tables are read', async () => {
    const statements = new PostgresStatements({ url })
    onTestFinished(() => statements.close())
    await statements.execute(`CREATE TABLE schema_migration (version bigint, name text);
      INSERT INTO schema_migration VALUES (1, 'calls-and-money'), (2, 'access')`)
    const refusal = /it was made by an unreleased version of Tollgate; move it away and start again/
    await expect(opened({ secretKey: key })).rejects.toThrow(refusal)
    await expect(readServer(url, () => Promise.resolve())).rejects.toThrow(refusal)
  })

  test('secrets are sealed with the key of the first node, and another key is refused', async () => {
    const place = { table: 'carrier', column: 'auth_password', row: 1 }
    const one = await opened({ secretKey: key })
    const other = await opened({ secretKey: key })
    expect(other.secrets.open(place, one.secrets.seal(place, 'secret'))).toBe('secret')
    const wrong = Buffer.alloc(32, 8).toString('base64')
    await expect(opened({ secretKey: wrong })).rejects.toThrow(
      /^cannot use database postgres:\/\/\S+: SECRET_KEY is not the key/,
    )
    await expect(opened()).rejects.toThrow('their key')
  })

  test('two nodes that open it at once agree on one key', async () => {
    const results = await Promise.allSettled([
      opened({ keyFile: join(folder, 'one.key') }),
      opened({ keyFile: join(folder, 'two.key') }),
    ])
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
  })

  test('a key is made once, in the file', async () => {
    const keyFile = join(folder, 'node.key')
    await opened({ keyFile })
    const made = readFileSync(keyFile, 'utf8')
    await opened({ keyFile })
    expect(readFileSync(keyFile, 'utf8')).toBe(made)
  })
})

test('a server that does not answer is refused in one line, without the password', async () => {
  const away = openStore('postgres://me:hidden@127.0.0.1:1/tollgate', {
    now: 0,
    secretKey: key,
    keyFile: '',
  })
  await expect(away).rejects.toThrow(
    /^cannot use database postgres:\/\/me@127\.0\.0\.1:1\/tollgate: the database server does not answer: [^\n]*ECONNREFUSED/,
  )
})
