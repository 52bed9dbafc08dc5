import { join } from 'node:path'
import { writeFileSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { runCommandLine } from '../../../engine/commands/index.ts'
import { newestVersion } from '../../../schema/migrations/index.ts'
import { PostgresStatements } from '../../../schema/sql/postgres-statements.ts'
import { freshDatabase, hasPostgres } from '../../support/postgres.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { fakeWorld } from './fake-world.ts'

describe.runIf(hasPostgres)('commands with DATABASE_URL', () => {
  let url: string
  let drop: () => Promise<void>
  let environment: Record<string, string>
  beforeEach(async () => {
    ;({ url, drop } = await freshDatabase('empty'))
    const path = join(temporaryFolder(), 'tollgate.db')
    environment = { DATABASE_URL: url, DATABASE_PATH: path, SECRET_KEY: 'A'.repeat(43) }
  })
  afterEach(() => drop())

  const run = async (words: readonly string[], input = '') => {
    const world = fakeWorld(environment, input)
    const code = await runCommandLine(words, world)
    return { code, lines: [...world.printed, ...world.complaints] }
  }
  const count = async (table: string): Promise<number | undefined> => {
    const statements = new PostgresStatements({ url, connections: 1 })
    const row = await statements
      .prepare<{ n: number }>(`SELECT count(*) AS n FROM ${table}`)
      .get([])
    await statements.close()
    return row?.n
  }

  test('migrate, check, seed, key create and user create work there', async () => {
    expect((await run(['check'])).lines.join()).toContain('has schema version 0')
    const early = await run(['key', 'create', '--name', 'k'])
    expect([early.code, early.lines.join()]).toEqual([
      2,
      expect.stringMatching(
        /DATABASE_URL: .* is no database of Tollgate yet; .*"tollgate migrate"/,
      ),
    ])
    expect((await run(['migrate'])).code).toBe(0)
    expect((await run(['check'])).lines.join()).toContain(`has schema version ${newestVersion}`)
    const file = join(temporaryFolder(), 'seed.json')
    writeFileSync(file, JSON.stringify({ tenants: [{ slug: 'acme', name: 'Acme' }] }))
    expect(await run(['seed', file])).toMatchObject({ code: 0 })
    expect(await run(['key', 'create', '--name', 'k'])).toMatchObject({ code: 0 })
    const user = ['user', 'create', '--username', 'ann', '--role', 'operator']
    expect(await run(user, 'a long password')).toMatchObject({ code: 0 })
    expect(
      await Promise.all(['tenant', 'application_key', '"user"', 'audit_entry'].map(count)),
    ).toEqual([1, 1, 1, 3])
  })

  test.each([
    [['backup', '/tmp/copy.db'], 'pg_dump'],
    [['restore', '/tmp/copy.db'], 'pg_restore'],
    [['secrets', 'reset'], 'put the key back'],
  ])('%j says what to do there instead', async (words, instead) => {
    const { code, lines } = await run(words)
    expect(code).toBe(2)
    expect(lines.join()).toContain(instead)
  })
})
