import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { expect, onTestFinished, test } from 'vitest'
import { onSqlite } from '../support/on-sqlite.ts'
import { settingsOfDatabase } from '../support/program-database.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { startProgram } from './program.ts'

const folder = temporaryFolder()

async function takenUdpPort(): Promise<number> {
  const socket = createSocket('udp4').bind(0, '127.0.0.1')
  onTestFinished(() => void socket.close())
  await once(socket, 'listening')
  return socket.address().port
}

async function takenTcpPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  const address = server.address()
  return typeof address === 'object' && address !== null ? address.port : 0
}

async function failure(environment: Record<string, string>) {
  const program = startProgram(['serve'], environment)
  return { code: await program.ended, said: program.complaints, printed: program.printed }
}

test('the first start makes an administrator, prints the password once, and says where it serves', async () => {
  const environment = await settingsOfDatabase(join(folder, 'first.db'))
  const first = startProgram([], environment)
  const ready = await first.line(/^ready /)
  expect(ready).toMatch(
    /^ready sip=udp\/127\.0\.0\.1:\d+ api=127\.0\.0\.1:\d+ edge=127\.0\.0\.1:\d+ console=http:\/\/127\.0\.0\.1:\d+\/$/,
  )
  const [, password = ''] = /password (\S+)/.exec(await first.line(/^created user admin/)) ?? []
  const api = /api=(\S+)/.exec(ready)?.[1]
  const login = await fetch(`http://${api}/api/v1/auth/login`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ username: 'admin', password }),
  })
  expect(login.status).toBe(200)
  expect((await fetch(`http://${api}/readyz`)).status).toBe(200)
  first.child.kill('SIGTERM')
  expect(await first.ended).toBe(0)
  expect(first.printed.filter((line) => line.startsWith('ready '))).toHaveLength(1)

  const second = startProgram([], environment)
  await second.line(/^ready /)
  second.child.kill('SIGINT')
  expect(await second.ended).toBe(0)
  expect(second.printed).toHaveLength(1)
})

test('the password of the settings is used, and not printed', async () => {
  const program = startProgram(['serve'], {
    ...(await settingsOfDatabase(join(folder, 'given.db'))),
    ADMIN_PASSWORD: 'correct horse',
  })
  await program.line(/^ready /)
  program.child.kill('SIGTERM')
  await program.ended
  expect([...program.printed, ...program.complaints].join('\n')).not.toContain('correct horse')
  expect(program.printed).toHaveLength(1)
})

onSqlite('no database')('a wrong setting: exit code 2 and the one line that names it', async () => {
  expect(await failure({ NODE_TIMEOUT_MS: 'soon' })).toEqual({
    code: 2,
    said: ['tollgate: NODE_TIMEOUT_MS is "soon"; allowed is a whole number from 100 to 60000 (ms)'],
    printed: [],
  })
})

onSqlite('no database')('a SIP port in use: exit code 2 and one line that names it', async () => {
  const port = await takenUdpPort()
  const { code, said } = await failure({
    DATABASE_PATH: join(folder, 'sip-port.db'),
    SIP_LISTEN: `udp/127.0.0.1:${port}`,
    LOG_LEVEL: 'error',
  })
  expect(code).toBe(2)
  expect(said).toEqual([
    `tollgate: SIP_LISTEN: udp/127.0.0.1:${port} is in use by another program; stop that one, or set another port (EADDRINUSE)`,
  ])
})

onSqlite('no database').each(['API_LISTEN', 'EDGE_LISTEN'])(
  'a port of %s in use: exit code 2 and one line that names it',
  async (setting) => {
    const port = await takenTcpPort()
    const { code, said } = await failure({
      DATABASE_PATH: join(folder, `${setting}.db`),
      [setting]: `127.0.0.1:${port}`,
      LOG_LEVEL: 'error',
    })
    expect(code).toBe(2)
    expect(said).toEqual([
      `tollgate: ${setting}: 127.0.0.1:${port} is in use by another program; stop that one, or set another port (EADDRINUSE)`,
    ])
  },
)

onSqlite('file')(
  'a database of a newer version: exit code 2, one line, and the file is untouched',
  async () => {
    const path = join(folder, 'newer.db')
    const database = new Sqlite(path)
    database.exec(
      'CREATE TABLE schema_migration (version INTEGER); PRAGMA user_version = 4711; PRAGMA application_id = 0x746f6c6c',
    )
    database.close()
    const before = readFileSync(path)
    const { code, said } = await failure({ DATABASE_PATH: path })
    expect(code).toBe(2)
    expect(said).toEqual([expect.stringContaining('schema version 4711')])
    expect(readFileSync(path).equals(before)).toBe(true)
  },
)

onSqlite('file')(
  'a broken database: exit code 2, one line, and the file is untouched',
  async () => {
    const path = join(folder, 'broken.db')
    writeFileSync(path, 'SQLite format 3\0'.padEnd(4_096, 'x'))
    const before = readFileSync(path)
    const { code, said } = await failure({ DATABASE_PATH: path })
    expect(code).toBe(2)
    expect(said).toHaveLength(1)
    expect(readFileSync(path).equals(before)).toBe(true)
  },
)

test('a second process on the same database is refused; the first goes on', async () => {
  const environment = await settingsOfDatabase(join(folder, 'shared.db'))
  const first = startProgram(['serve'], environment)
  await first.line(/^ready /)
  const { code, said } = await failure(environment)
  expect(code).toBe(2)
  expect(said).toEqual([expect.stringContaining('another tollgate process is serving it')])
  first.child.kill('SIGTERM')
  expect(await first.ended).toBe(0)
})

test('what `tollgate seed` writes holds for a running process', async () => {
  const database = await settingsOfDatabase(join(folder, 'seeded.db'))
  const environment = { ...database, LOG_LEVEL: 'info' }
  const serving = startProgram(['serve'], environment)
  await serving.line(/^ready /)
  const file = join(folder, 'seed.json')
  const nodes = [{ host: '127.0.0.1', internal_port: await takenUdpPort() }]
  writeFileSync(
    file,
    JSON.stringify({ dispatcher: [{ endpoint_name: 'pbx', set_id: 1, algorithm: 8, nodes }] }),
  )
  const seeding = startProgram(['seed', file], environment)
  expect(await seeding.ended).toBe(0)
  // The node never answers: that it is probed at all shows that the process knows it.
  await expect
    .poll(() => serving.complaints.some((line) => line.includes('node is probing')))
    .toBe(true)
})
