import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { runCommandLine } from '../../../engine/commands/index.ts'
import { openDatabase } from '../../../schema/sqlite/open.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { fakeWorld } from './fake-world.ts'

const folder = temporaryFolder()

test('what a command changes leaves an audit entry, also when it fails, and no secret in it', async () => {
  const path = join(folder, 'tollgate.db')
  const file = join(folder, 'seed.json')
  const run = async (words: string[], input = '') => {
    const world = fakeWorld({ DATABASE_PATH: path }, input)
    return { code: await runCommandLine(words, world), printed: world.printed }
  }
  const plans = (names: string[]) =>
    writeFileSync(file, JSON.stringify({ rate_plans: names.map((name) => ({ name })) }))
  await run(['migrate'])
  const made = await run(['key', 'create', '--name', 'probe', '--scopes', '*'])
  const user = ['user', 'create', '--username', 'ann', '--role', 'operator']
  expect((await run(user, 'correct horse\n')).code).toBe(0)
  expect((await run(user, 'correct horse\n')).code).toBe(1)
  plans(['retail'])
  expect((await run(['seed', file])).code).toBe(0)
  plans(['retail', 'retail', ''])
  const failed = await run(['seed', file])
  expect(failed.code).not.toBe(0)

  const store = openDatabase(path)
  const rows = store.sqlite
    .prepare('SELECT actor, address, action, target, outcome, status FROM audit_entry ORDER BY id')
    .raw()
    .all()
  const everything = JSON.stringify(store.sqlite.prepare('SELECT * FROM audit_entry').all())
  store.close()
  const by = ['console', 'console']
  expect(rows).toEqual([
    [...by, 'command key create', 'probe', 'success', 0],
    [...by, 'command user create', 'ann (operator)', 'success', 0],
    [...by, 'command user create', 'ann (operator)', 'failed', 1],
    [...by, 'command seed', file, 'success', 0],
    [...by, 'command seed', file, 'failed', 1],
  ])
  expect(everything).not.toContain('horse')
  expect(everything).not.toContain(made.printed[0] ?? '?')
})

test('a key that a command makes has an owner: the console, or a user who is named', async () => {
  const path = join(folder, 'owners.db')
  let drawn = 0
  const run = async (words: string[], input = '') => {
    const randomBytes = (size: number) => Buffer.alloc(size, (drawn += 1))
    const world = { ...fakeWorld({ DATABASE_PATH: path }, input), randomBytes }
    return { code: await runCommandLine(words, world), complaints: world.complaints }
  }
  await run(['migrate'])
  await run(['user', 'create', '--username', 'ann', '--role', 'operator'], 'correct horse\n')
  await run(['key', 'create', '--name', 'one'])
  await run(['key', 'create', '--name', 'other', '--owner', 'ann'])
  expect(await run(['key', 'create', '--name', 'third', '--owner', 'bob'])).toEqual({
    code: 1,
    complaints: ['tollgate: --owner: there is no user "bob"'],
  })
  const store = openDatabase(path)
  const owners = store.sqlite
    .prepare('SELECT name, owner_username FROM application_key ORDER BY name')
    .raw()
    .all()
  store.close()
  expect(owners).toEqual([
    ['one', 'console'],
    ['other', 'ann'],
  ])
})
