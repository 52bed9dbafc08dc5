import { join } from 'node:path'
import { expect, test } from 'vitest'
import { runCommandLine } from '../../../engine/commands/index.ts'
import { openDatabase } from '../../../schema/sqlite/open.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { fakeWorld } from './fake-world.ts'

const folder = temporaryFolder()

test('the second factor of a lost telephone is removed, of this user alone, and the sessions end', async () => {
  const path = join(folder, 'tollgate.db')
  const run = async (words: string[], input = '') => {
    const world = fakeWorld({ DATABASE_PATH: path }, input)
    const code = await runCommandLine(words, world)
    return { code, printed: world.printed, complaints: world.complaints }
  }
  await run(['migrate'])
  const create = ['user', 'create', '--role', 'admin', '--username']
  for (const name of ['ann', 'bob']) await run([...create, name], 'correct horse\n')
  const store = openDatabase(path)
  store.sqlite.exec(`
    INSERT INTO tenant (id, slug, name, is_active, created_at)
      VALUES (1, 'acme', 'Acme', 1, 0);
    INSERT INTO "user" (username, role, tenant_id, password_hash, is_active, created_at, updated_at)
      SELECT 'ann', role, 1, password_hash, 1, 0, 0 FROM "user" WHERE username = 'ann';
    INSERT INTO user_second_factor SELECT id, 'sealed', 1, 1, 1 FROM "user";
    INSERT INTO user_recovery_code SELECT id, randomblob(32) FROM "user";
    INSERT INTO user_session
      SELECT 'session ' || id, id, 'x', 1, 1, 9000000000000, '::1', NULL, NULL FROM "user";
  `)
  const left = (table: string): unknown =>
    store.sqlite
      .prepare(`SELECT tenant_id, username FROM "user" JOIN ${table} ON user_id = "user".id`)
      .raw()
      .all()
  const reset = ['user', 'reset-second-factor', '--username']
  expect(await run([...reset, 'ANN'])).toEqual({
    code: 0,
    printed: ['user ann has no second factor any more; the password is as it was'],
    complaints: [],
  })
  const others = [
    [null, 'bob'],
    [1, 'ann'],
  ]
  for (const table of ['user_second_factor', 'user_recovery_code', 'user_session'])
    expect(left(table)).toEqual(others)
  expect(store.sqlite.prepare('SELECT jti FROM jwt_denylist').raw().all()).toEqual([['session 1']])

  expect(await run([...reset, 'ann', '--tenant', 'acme'])).toMatchObject({ code: 0 })
  expect(left('user_second_factor')).toEqual([[null, 'bob']])
  expect((await run([...reset, 'ann'])).complaints).toEqual([
    'tollgate: user ann has no second factor',
  ])
  expect((await run([...reset, 'eve'])).complaints).toEqual(['tollgate: there is no user eve'])
  expect((await run([...reset, 'bob', '--tenant', 'acme'])).code).toBe(1)
  const audit = store.sqlite
    .prepare(`SELECT actor, target, outcome FROM audit_entry WHERE action LIKE '%second%'`)
    .raw()
    .all()
  expect(audit).toEqual([
    ['console', 'ann', 'success'],
    ['console', 'ann of acme', 'success'],
    ['console', 'ann', 'failed'],
    ['console', 'eve', 'failed'],
    ['console', 'bob of acme', 'failed'],
  ])
  store.close()
})
