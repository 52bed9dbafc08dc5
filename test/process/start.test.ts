/** How the program starts, refuses to start, and ends; and its commands beside it. */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { expect, onTestFinished, test } from 'vitest'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { startProgram } from './program.ts'

const folder = temporaryFolder()
const newPath = (): string => join(mkdtempSync(join(folder, 'place-')), 'tollgate.db')

async function run(
  words: readonly string[],
  environment: Record<string, string> = {},
  input?: string,
) {
  const { child, ended, printed, complaints } = startProgram(words, environment)
  child.stdin?.end(input)
  return { code: await ended, out: printed.join('\n'), err: complaints.join('\n') }
}

/** Until it serves; its API, and how to end it. */
async function serve(environment: Record<string, string>) {
  const program = startProgram(['serve'], environment)
  const [, api = ''] = /api=(\S+)/.exec(await program.line(/^ready /)) ?? []
  const login = (username: string, password: string) =>
    fetch(`http://${api}/api/v1/auth/login`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ username, password }),
    })
  const end = async (signal: 'SIGTERM' | 'SIGINT' = 'SIGTERM'): Promise<void> => {
    program.child.kill(signal)
    expect(await program.ended).toBe(0)
  }
  return { ...program, api, login, end }
}

async function takenPort(protocol: 'udp' | 'tcp'): Promise<number> {
  const taken =
    protocol === 'udp'
      ? createSocket('udp4').bind(0, '127.0.0.1')
      : createServer().listen(0, '127.0.0.1')
  onTestFinished(() => void taken.close())
  await once(taken, 'listening')
  return (taken.address() as { readonly port: number }).port
}

test('the first start makes an administrator and prints the password once; a second process is refused, a later start is silent', async () => {
  const environment = { DATABASE_PATH: newPath() }
  const first = await serve(environment)
  expect(await first.line(/^ready /)).toMatch(
    /^ready sip=udp\/127\.0\.0\.1:\d+ api=127\.0\.0\.1:\d+ edge=127\.0\.0\.1:\d+ console=http:\/\/127\.0\.0\.1:\d+\/$/,
  )
  const [, password = ''] = /password (\S+)/.exec(await first.line(/^created user admin/)) ?? []
  expect((await first.login('admin', password)).status).toBe(200)
  expect((await fetch(`http://${first.api}/readyz`)).status).toBe(200)
  expect(await run(['serve'], environment)).toMatchObject({
    code: 2,
    err: expect.stringContaining('another tollgate process is serving it') as string,
  })
  await first.end()
  const second = await serve(environment)
  await second.end('SIGINT')
  expect(second.printed).toHaveLength(1)
})

test('a start that fails prints no password; that of the settings is used, and not printed', async () => {
  const environment = { DATABASE_PATH: newPath(), ADMIN_PASSWORD: 'correct horse' }
  const taken = `udp/127.0.0.1:${await takenPort('udp')}`
  const { DATABASE_PATH } = environment
  const failing = { DATABASE_PATH, SIP_LISTEN: taken, LOG_LEVEL: 'error' }
  expect(await run(['serve'], failing)).toEqual({
    code: 2,
    out: '',
    err: `tollgate: SIP_LISTEN: ${taken} is in use by another program; stop that one, or set another port (EADDRINUSE)`,
  })
  const serving = await serve(environment)
  expect((await serving.login('admin', 'correct horse')).status).toBe(200)
  const change = ['user', 'password', '--username', 'admin']
  expect(await run(change, { DATABASE_PATH }, 'battery staple\n')).toMatchObject({
    code: 0,
    out: 'user admin has a new password',
  })
  expect((await serving.login('admin', 'correct horse')).status).toBe(401)
  expect((await serving.login('admin', 'battery staple')).status).toBe(200)
  await serving.end()
  expect([...serving.printed, ...serving.complaints].join()).not.toContain('correct horse')
})

test('a wrong or taken setting, a database that cannot be: exit code 2, one line that names it, and nothing is touched', async () => {
  const port = await takenPort('tcp')
  const newer = newPath()
  const database = new Sqlite(newer)
  database.exec(
    'CREATE TABLE schema_migration (version INTEGER); PRAGMA user_version = 4711; PRAGMA application_id = 0x746f6c6c',
  )
  database.close()
  const broken = newPath()
  writeFileSync(broken, 'SQLite format 3\0'.padEnd(4_096, 'x'))
  const before = [newer, broken].map((path) => readFileSync(path, 'base64'))
  const absent = join(folder, 'not-mounted', 'tollgate.db')
  const failures: [Record<string, string>, RegExp][] = [
    [
      { NODE_TIMEOUT_MS: 'soon' },
      /^tollgate: NODE_TIMEOUT_MS is "soon"; allowed is a whole number from 100 to 60000 \(ms\)$/,
    ],
    [
      { DATABASE_PATH: newPath(), API_LISTEN: `127.0.0.1:${port}`, LOG_LEVEL: 'error' },
      new RegExp(
        `^tollgate: API_LISTEN: 127\\.0\\.0\\.1:${port} is in use by another program; .*$`,
      ),
    ],
    [{ DATABASE_PATH: newer }, /schema version 4711/],
    [{ DATABASE_PATH: broken }, /^tollgate: DATABASE_PATH: cannot use database .*$/],
    [{ DATABASE_PATH: absent }, /does not exist; create it, or use --create/],
    [{ DATABASE_PATH: '/proc/x/t.db' }, /DATABASE_PATH/],
  ]
  for (const [environment, said] of failures)
    expect(await run(['serve'], environment)).toEqual({
      code: 2,
      out: '',
      err: expect.stringMatching(said),
    })
  expect([newer, broken].map((path) => readFileSync(path, 'base64'))).toEqual(before)
  expect(existsSync(join(absent, '..'))).toBe(false)
})

test('commands make no database unless they are told to, and say in one line what is wrong with a file', async () => {
  const seed = join(folder, 'seed.json')
  writeFileSync(seed, '{"rate_plans":[{"name":"a"},{"name":"b"}]}')
  const DATABASE_PATH = join(folder, 'deep', 'tollgate.db')
  const absent = join(folder, 'absent.db')
  for (const words of [
    ['key', 'create', '--name', 'k'],
    ['seed', seed],
  ])
    expect(await run(words, { DATABASE_PATH: absent })).toEqual({
      code: 2,
      out: '',
      err: expect.stringMatching(
        /^tollgate: DATABASE_PATH: there is no database .*; "tollgate serve", "tollgate migrate" or "tollgate seed --create FILE\.json" makes one$/,
      ),
    })
  expect(existsSync(absent)).toBe(false)
  expect((await run(['seed', seed, '--create'], { DATABASE_PATH })).out).toBe(
    'rate_plans: 2 created, 0 updated, 0 unchanged',
  )
  expect(await run(['seed', `${seed}.no`], { DATABASE_PATH })).toMatchObject({
    code: 2,
    err: `tollgate: cannot read ${seed}.no: there is no such file`,
  })
  const slip = join(folder, 'slip.json')
  writeFileSync(slip, '{"rate_plans":[{"nmae":"a"}]}')
  const { code, err } = await run(['seed', slip], { DATABASE_PATH, PROBE_INTERVALL_MS: '100' })
  expect([code, err]).toEqual([
    1,
    expect.stringContaining('rate_plans[0].nmae: Unknown field: did you mean "name"?'),
  ])
  expect(err).toContain('PROBE_INTERVALL_MS is not a setting; did you mean PROBE_INTERVAL_MS?')
})

test('what `tollgate seed` writes holds for a running process', async () => {
  const environment = { DATABASE_PATH: newPath(), LOG_LEVEL: 'info' }
  const serving = await serve(environment)
  const file = join(folder, 'set.json')
  const nodes = [{ host: '127.0.0.1', internal_port: await takenPort('udp') }]
  const dispatcher = [{ endpoint_name: 'pbx', set_id: 1, algorithm: 8, nodes }]
  writeFileSync(file, JSON.stringify({ dispatcher }))
  expect(await run(['seed', file], environment)).toMatchObject({ code: 0 })
  // The node never answers: that it is probed at all shows that the process knows it.
  await expect.poll(() => serving.complaints.join()).toContain('node is probing')
})

test('a start closes its own folder data/ to others; it leaves any other, and says so if they may read it', async () => {
  for (const [environment, mode, told] of [
    [{}, 0o700, 0],
    [{ DATABASE_PATH: './data/tollgate.db' }, 0o755, 1],
  ] as const) {
    const place = mkdtempSync(join(folder, 'place-'))
    mkdirSync(join(place, 'data'))
    chmodSync(join(place, 'data'), 0o755)
    const { child, complaints, ended, line } = startProgram(['serve'], { ...environment }, place)
    await line(/^ready /)
    child.kill('SIGTERM')
    expect(await ended).toBe(0)
    expect(statSync(join(place, 'data')).mode & 0o777).toBe(mode)
    const warned = complaints.filter((text) => text.includes('others may read the folder'))
    expect(warned).toHaveLength(told)
  }
})

test('SIGTERM ends a start that waits for a drachtio-server which does not answer', async () => {
  const { child, complaints, ended, printed } = startProgram(['serve'], {
    DATABASE_PATH: newPath(),
    DRACHTIO_URL: 'drachtio://:cymru@127.0.0.1:9',
  })
  await expect.poll(() => complaints.join()).toContain('drachtio')
  child.kill('SIGTERM')
  expect([await ended, printed]).toEqual([0, []])
})

/** Code that runs in the program's process once it has printed that it is ready. */
const whenReady = (code: string): string => {
  const script = `const write = process.stdout.write.bind(process.stdout)
    process.stdout.write = (text, ...rest) => {
      if (String(text).startsWith('ready ')) setTimeout(() => { ${code} }, 50)
      return write(text, ...rest)
    }`
  return `--import=data:text/javascript,${encodeURIComponent(script)}`
}

test.each([
  ['an exception', "throw new Error('boom')"],
  ['a rejection', "Promise.reject(new Error('boom'))"],
])('%s that nothing catches: one fatal line, exit code 1', async (_, code) => {
  const environment = { DATABASE_PATH: newPath(), NODE_OPTIONS: whenReady(code) }
  const ended = await run(['serve'], { ...environment, LOG_LEVEL: 'fatal' })
  expect(ended.code).toBe(1)
  expect(JSON.parse(ended.err)).toMatchObject({ level: 'fatal', error: { message: 'boom' } })
})

test('a database that is missing or empty beside its files is refused, not begun anew: --new means it', async () => {
  const path = newPath()
  const environment = { DATABASE_PATH: path }
  await (await serve(environment)).end()
  const names = ['key', 'lock'].map((suffix) => `tollgate.db.${suffix}`)
  for (const empty of [() => rmSync(path), () => writeFileSync(path, '')]) {
    empty()
    for (const words of [['serve'], [], ['migrate'], ['seed', '--create', 'GUIDE.md']]) {
      const { code, out, err } = await run(words, environment)
      expect({ words, code, out }).toEqual({ words, code: 2, out: '' })
      for (const name of names) expect(err).toContain(name)
      expect(err).toMatch(/^tollgate: DATABASE_PATH: .*(?:missing|empty).* --new/)
    }
  }
  const begun = startProgram(['serve', '--new'], environment)
  await begun.line(/^created user admin/)
  await begun.line(/^ready /)
  begun.child.kill('SIGTERM')
  expect(await begun.ended).toBe(0)
  // Now it is there.
  await (await serve(environment)).end()
})
