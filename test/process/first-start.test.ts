import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { onSqlite } from '../support/on-sqlite.ts'
import { settingsOfDatabase } from '../support/program-database.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { startProgram } from './program.ts'

const folder = temporaryFolder()

const failure = async (words: readonly string[], environment: Record<string, string>) => {
  const { ended, printed, complaints } = startProgram(words, environment)
  return { code: await ended, printed, said: complaints }
}

onSqlite('elsewhere').each(['SIGTERM', 'SIGINT'] as const)(
  '%s ends a start that waits for a drachtio-server which does not answer',
  async (signal) => {
    const program = startProgram(['serve'], {
      DATABASE_PATH: join(folder, `${signal}.db`),
      DRACHTIO_URL: 'drachtio://:cymru@127.0.0.1:9',
    })
    await expect.poll(() => program.complaints.join()).toContain('drachtio')
    program.child.kill(signal)
    expect(await program.ended).toBe(0)
    expect(program.printed).toEqual([])
  },
)

onSqlite('file')('a database where no file can be: exit code 2 and one line, at once', async () => {
  expect(await failure(['serve', '--create'], { DATABASE_PATH: '/proc/x/t.db' })).toEqual({
    code: 2,
    printed: [],
    said: [
      expect.stringMatching(
        /^tollgate: DATABASE_PATH: cannot use database \/proc\/x\/t\.db: ENOENT/,
      ),
    ],
  })
})

onSqlite('file').each([['serve'], ['migrate']])(
  '%s makes no folder for its database unless it is told to',
  async (...words) => {
    const path = join(folder, `not-mounted-${words.join('-')}`, 'tollgate.db')
    expect(await failure(words, { DATABASE_PATH: path })).toEqual({
      code: 2,
      printed: [],
      said: [expect.stringContaining('does not exist; create it, or use --create')],
    })
    expect(existsSync(join(path, '..'))).toBe(false)
  },
)

const seedFile = join(folder, 'seed.json')
writeFileSync(seedFile, '{"rate_plans":[{"name":"default"}]}')

onSqlite('file').each([[['migrate', '--create']], [['seed', seedFile, '--create']]])(
  'with --create the folder is made: %j',
  async (words) => {
    const path = join(folder, `made-${words[0]}`, 'deep', 'tollgate.db')
    const { code } = await failure(words, { DATABASE_PATH: path })
    expect([code, existsSync(path)]).toEqual([0, true])
  },
)

onSqlite('file').each([
  [['key', 'create', '--name', 'k']],
  [['user', 'create', '--username', 'u', '--role', 'admin']],
  [['user', 'password', '--username', 'admin']],
  [['seed', seedFile]],
])('without a database %j says in one line how to make one, and makes none', async (words) => {
  const path = join(folder, `absent-${words.join('-').replaceAll('/', '-')}.db`)
  const program = startProgram(words, { DATABASE_PATH: path })
  program.child.stdin?.end('correct horse')
  expect(await program.ended).toBe(2)
  expect(program.complaints).toEqual([
    expect.stringMatching(
      /^tollgate: DATABASE_PATH: there is no database .*; "tollgate serve", "tollgate migrate" or "tollgate seed --create FILE\.json" makes one$/,
    ),
  ])
  expect([program.printed, existsSync(path)]).toEqual([[], false])
})

onSqlite('file')(
  'a start closes its own folder data/ to others; it leaves any other, and says so if they may read it',
  async () => {
    const ends = [
      { environment: {}, mode: 0o700, told: 0 },
      { environment: { DATABASE_PATH: './data/tollgate.db' }, mode: 0o755, told: 1 },
    ]
    for (const { environment, mode, told } of ends) {
      const place = mkdtempSync(join(folder, 'place-'))
      mkdirSync(join(place, 'data'))
      chmodSync(join(place, 'data'), 0o755)
      const program = startProgram(['serve'], environment, place)
      await program.line(/^ready /)
      program.child.kill('SIGTERM')
      expect(await program.ended).toBe(0)
      expect(statSync(join(place, 'data')).mode & 0o777).toBe(mode)
      const warned = program.complaints.filter((line) =>
        line.includes('others may read the folder'),
      )
      expect(warned).toHaveLength(told)
    }
  },
)

test('a first start that fails prints no password; the one that serves does, and it is valid', async () => {
  const socket = createSocket('udp4').bind(0, '127.0.0.1')
  onTestFinished(() => void socket.close())
  await once(socket, 'listening')
  const environment = await settingsOfDatabase(join(folder, 'failed.db'))
  const taken = `udp/127.0.0.1:${socket.address().port}`
  const failed = await failure(['serve'], { ...environment, SIP_LISTEN: taken })
  expect(failed).toMatchObject({ code: 2, printed: [] })
  const program = startProgram(['serve'], environment)
  const ready = await program.line(/^ready /)
  const [, password = ''] = /password (\S+)/.exec(await program.line(/^created user admin/)) ?? []
  const login = await fetch(`http://${/api=(\S+)/.exec(ready)?.[1]}/api/v1/auth/login`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ username: 'admin', password }),
  })
  expect(login.status).toBe(200)
  program.child.kill('SIGTERM')
  expect(await program.ended).toBe(0)
})
