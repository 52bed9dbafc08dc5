import { join } from 'node:path'
import { afterAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { migrations, newestVersion } from '../../../schema/migrations/index.ts'
import { openStore, type ServerStoreOptions } from '../../../schema/postgres/open.ts'
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

  async function opened(options: Partial<ServerStoreOptions> = {}) {
    const store = await openStore(url, {
      ...options,
      now: 5,
      secretKey: options.secretKey,
      keyFile: options.keyFile ?? join(folder, 'missing.key'),
    })
    onTestFinished(() => store.close())
    return store
  }

  test('a database that instances serve from is not migrated under them', async () => {
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

  test('secrets are sealed with the key of the first instance, and another key is refused', async () => {
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

  test('two instances that open it at once agree on one key', async () => {
    const results = await Promise.allSettled([
      opened({ keyFile: join(folder, 'one.key') }),
      opened({ keyFile: join(folder, 'two.key') }),
    ])
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
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
