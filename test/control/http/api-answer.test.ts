import Sqlite from 'better-sqlite3'
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, expect, test, onTestFinished } from 'vitest'
import { ApiAnswer } from '../../../control/http/api-answer.ts'
import { Hono } from 'hono'
import { join } from 'node:path'
import type { ControlEnv } from '../../../control/http/control-env.ts'
import { writeGate } from '../../../control/http/front.ts'
import { SqliteStatements } from '../../../schema/sql/sqlite-statements.ts'
import { ManualTime } from '../../support/manual-time.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'

const servers: { close(): void }[] = []

afterEach(() => {
  for (const server of servers.splice(0)) server.close()
})

async function ask(answer: RequestListener<never, typeof ApiAnswer>): Promise<Response> {
  const server = createServer({ ServerResponse: ApiAnswer }, answer)
  servers.push(server.listen(0, '127.0.0.1'))
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return fetch(`http://127.0.0.1:${port}/`)
}

test('early headers stand in every kind of answer', async () => {
  for (const finish of [
    (response: ApiAnswer) => response.writeHead(201, { 'Content-Type': 'text/plain' }).end('x'),
    (response: ApiAnswer) => response.writeHead(201, 'Made', { 'X-Own': '1' }).end('x'),
    (response: ApiAnswer) => response.writeHead(201, ['X-Own', '1']).end('x'),
    (response: ApiAnswer) => response.writeHead(201).end('x'),
    (response: ApiAnswer) => {
      response.statusCode = 201
      response.end('x')
    },
  ]) {
    const counted: number[] = []
    const answer = await ask((_, response) => {
      response.setEarly('X-Early', 'yes')
      response.count = { add: (status) => counted.push(status) }
      finish(response)
    })
    expect(answer.status).toBe(201)
    expect(answer.headers.get('x-early')).toBe('yes')
    expect(await answer.text()).toBe('x')
    expect(counted).toEqual([201])
  }
})

const folder = temporaryFolder()

function gated(name: string) {
  const path = join(folder, name)
  const [sqlite, other] = [new Sqlite(path, { timeout: 0 }), new Sqlite(path)]
  onTestFinished(() => {
    other.close()
    sqlite.close()
  })
  sqlite.pragma('journal_mode = WAL')
  const time = new ManualTime(0)
  const app = new Hono<ControlEnv>()
  app.use(writeGate({ sqlite, statements: new SqliteStatements(sqlite) }, time.schedule))
  const served: string[] = []
  app.post('*', (c) => {
    served.push(c.req.path)
    return c.text('done')
  })
  const post = async (path: string) => app.request(path, { method: 'POST' })
  return { other, time, post, served }
}

test('while another process has the write lock, requests that may write wait for it, and nothing else does', async () => {
  const { other, time, post, served } = gated('a.db')
  await post('/first')
  expect(served).toEqual(['/first'])
  other.exec('BEGIN EXCLUSIVE')
  const startedAt = performance.now()
  const answers = [post('/second'), post('/third')]
  expect(performance.now() - startedAt).toBeLessThan(50)
  await post('/api/ocs/cdr')
  time.advance(1_000)
  expect(served).toEqual(['/first', '/api/ocs/cdr'])
  other.exec('ROLLBACK')
  time.advance(20)
  await Promise.all(answers)
  expect(served).toEqual(['/first', '/api/ocs/cdr', '/second', '/third'])
  expect(time.waiting).toBe(0)
})

test('they wait for two seconds at most', async () => {
  const { other, time, post, served } = gated('b.db')
  other.exec('BEGIN EXCLUSIVE')
  const answer = post('/stubborn')
  time.advance(1_900)
  expect(served).toEqual([])
  time.advance(100)
  await answer
  expect(served).toEqual(['/stubborn'])
})
