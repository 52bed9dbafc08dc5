/** What operators stumbled over, on the real command line. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { settingsOfDatabase } from '../support/program-database.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { startProgram } from './program.ts'

const folder = temporaryFolder()

/** Commands on one database. */
async function commandLine(name: string) {
  const environment = await settingsOfDatabase(join(folder, `${name}.db`))
  const start = (words: readonly string[], more: Record<string, string> = {}) =>
    startProgram(words, { ...environment, ...more })
  const run = async (words: readonly string[], more: Record<string, string> = {}) => {
    const program = start(words, more)
    const code = await program.ended
    return { code, out: program.printed.join('\n'), err: program.complaints.join('\n') }
  }
  return { start, run }
}

function file(name: string, text: string): string {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}

test('a second run of the same seed file says that nothing has changed; slips in one are placed', async () => {
  const { run } = await commandLine('seeds')
  const plans = ['a', 'b'].map((name) => ({ name }))
  const seed = file('seed.json', JSON.stringify({ rate_plans: plans }))
  expect((await run(['seed', seed, '--create'])).out).toBe(
    'rate_plans: 2 created, 0 updated, 0 unchanged',
  )
  expect((await run(['seed', seed])).out).toBe('rate_plans: 0 created, 0 updated, 2 unchanged')
  const broken = await run(['seed', file('broken.json', '{\n  "rate_plans": [}\n}')])
  expect([broken.code, broken.err]).toEqual([
    1,
    expect.stringContaining('line 2, column 18 has "}"'),
  ])
  const slip = await run(['seed', file('slip.json', '{"rate_plans":[{"nmae":"a"}]}')])
  expect(slip.err).toContain('rate_plans[0].nmae: Unknown field: did you mean "name"?')
})

test('help is there for one word, and a misspelled setting is named by a command and by the start', async () => {
  const { start, run } = await commandLine('help')
  const help = await run(['key', '--help'])
  expect([help.code, help.out]).toEqual([0, expect.stringContaining('key create --name NAME')])
  const slip = { PROBE_INTERVALL_MS: '100' }
  const line = 'PROBE_INTERVALL_MS is not a setting; did you mean PROBE_INTERVAL_MS?'
  await run(['migrate'])
  const made = await run(['key', 'create', '--name', 'ci'], slip)
  expect([made.code, made.out, made.err]).toEqual([
    0,
    expect.stringMatching(/^sbc_live_[\w-]{64}$/),
    expect.stringContaining(line),
  ])
  const serving = start(['serve'], slip)
  await serving.line(/^ready /)
  await expect.poll(() => serving.complaints.join('\n')).toContain(line)
  serving.child.kill('SIGTERM')
  expect(await serving.ended).toBe(0)
})

test('user password gives a user a new password: the old one and the sessions of before are refused', async () => {
  const { start, run } = await commandLine('passwords')
  const serving = start(['serve'], { ADMIN_PASSWORD: 'correct horse' })
  const [, api = ''] = /api=(\S+)/.exec(await serving.line(/^ready /)) ?? []
  const login = async (password: string) => {
    const answer = await fetch(`http://${api}/api/v1/auth/login`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ username: 'admin', password }),
    })
    const { data } = (await answer.json()) as { data?: { token: string } }
    return { status: answer.status, token: data?.token }
  }
  const { token = '' } = await login('correct horse')
  const change = start(['user', 'password', '--username', 'admin'])
  change.child.stdin?.end('battery staple\n')
  expect([await change.ended, change.printed]).toEqual([0, ['user admin has a new password']])
  const me = await fetch(`http://${api}/api/v1/auth/me`, {
    headers: { Authorization: `Bearer ${token}` },
  })
  expect(me.status).toBe(401)
  expect((await login('correct horse')).status).toBe(401)
  expect((await login('battery staple')).status).toBe(200)
  const nobody = start(['user', 'password', '--username', 'nobody'])
  nobody.child.stdin?.end('battery staple')
  expect([await nobody.ended, nobody.complaints]).toEqual([
    1,
    ['tollgate: there is no user nobody'],
  ])
  expect((await run(['user', '--help'])).out).toContain('user password --username NAME')
  serving.child.kill('SIGTERM')
  expect(await serving.ended).toBe(0)
})

test('a file that is not there, or is a folder: one sentence', async () => {
  const { run } = await commandLine('files')
  await run(['migrate'])
  const absent = join(folder, 'absent.json')
  expect(await run(['seed', absent])).toMatchObject({
    code: 2,
    err: `tollgate: cannot read ${absent}: there is no such file`,
  })
  expect(await run(['seed', folder])).toMatchObject({
    code: 2,
    err: `tollgate: cannot read ${folder}: it is a folder`,
  })
})
