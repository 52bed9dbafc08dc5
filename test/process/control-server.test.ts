import { afterEach, expect, test } from 'vitest'
import type { ConnectionLimits } from '../../control/http/http-server.ts'
import { startControl, type ControlServer } from '../../control/server.ts'
import { openConnection, requestText } from '../support/http-connection.ts'
import { openControl } from '../support/control.ts'
import { readRows, readValue } from '../support/stored.ts'

const anyPort = { host: '127.0.0.1', port: 0 }
const servers: ControlServer[] = []

afterEach(async () => {
  for (const server of servers.splice(0)) await server.stop()
})

async function serve(limits: Partial<ConnectionLimits> = {}) {
  const control = await openControl()
  const every = () => () => undefined
  const server = await startControl(control.deps, { api: anyPort, edge: anyPort, every, limits })
  servers.push(server)
  return { ...control, server, open: () => openConnection(server.api.port) }
}

/** How an enveloped error reads. */
const envelope = (statusCode: number, code: string): string =>
  `"statusCode":${statusCode},"code":"${code}"`

test('a body that comes too slowly is 408 in the envelope', async () => {
  const { open, key } = await serve({ requestMs: 150, headersMs: 150 })
  // Made before: the time of a connection runs from its begin.
  const token = await key()
  const connection = await open()
  connection.write(
    `POST /api/v1/application-keys HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${token}\r\n` +
      'Content-Type: application/json\r\nContent-Length: 20\r\n\r\n{"name":',
  )
  const answer = await connection.answer()
  expect(answer.status).toBe(408)
  expect(answer.body).toContain(envelope(408, 'request_timeout'))
  for (const name of ['x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset'])
    expect(answer.headers.get(name)).toMatch(/^\d+$/)
  await connection.closed
})

test('headers that come too slowly, and a connection that says nothing, are cut off', async () => {
  const { open } = await serve({ requestMs: 150, headersMs: 150 })
  const [slow, silent] = [await open(), await open()]
  slow.write('GET /health HTTP/1.1\r\nHost: loc')
  expect((await slow.answer()).status).toBe(408)
  await Promise.all([slow.closed, silent.closed])
})

test.each([
  [
    'headers of more than 16 KiB',
    `GET / HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`,
    431,
  ],
  ['what is not HTTP', 'INVITE sip:a@b SIP/2.0\r\n\r\n', 400],
  ['a request without Host', 'GET /health HTTP/1.1\r\n\r\n', 400],
  [
    'two lengths',
    'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n',
    400,
  ],
  ['a host that is none', 'GET /health HTTP/1.1\r\nHost: a b/c\r\n\r\n', 400],
  ['a question to no resource', 'OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n', 400],
  ['an unsupported expectation', 'GET /health HTTP/1.1\r\nHost: a\r\nExpect: tea\r\n\r\n', 417],
])('%s is an error and ends nothing but that connection', async (_, bytes, status) => {
  const { open } = await serve()
  const connection = await open()
  connection.write(bytes)
  const answer = await connection.answer()
  expect(answer.status).toBe(status)
  expect(answer.body).toContain(`"success":false,"error":`)
  expect(answer.body).toContain(`"statusCode":${status}`)
  for (const name of ['x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset'])
    expect(answer.headers.get(name)).toMatch(/^\d+$/)
  expect(answer.headers.get('cache-control')).toBe('no-store')
  const id = answer.headers.get('x-correlation-id')
  expect(answer.body).toContain(`"request_id":"${id}"`)
  const other = await open()
  other.write(requestText('GET', '/health'))
  expect((await other.answer()).status).toBe(200)
})

test('a body of unknown length is 413 as soon as it passes 64 KiB', async () => {
  const { open, key } = await serve()
  const connection = await open()
  connection.write(
    `POST /api/v1/application-keys HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${await key()}\r\n` +
      'Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n',
  )
  const chunk = `10000\r\n${'x'.repeat(0x10000)}\r\n`
  const answer = connection.answer()
  for (let i = 0; i < 20; i += 1) connection.write(chunk)
  expect((await answer).status).toBe(413)
})

test('a client that does not read its answers is cut off', async () => {
  const { open, key } = await serve({ stalledMs: 300 })
  const connection = await open()
  connection.socket.pause()
  const requests = requestText('GET', '/openapi.json', await key()).repeat(20)
  // Something is always left to write: a paused socket learns of its end by nothing else.
  const askOn = (): void => {
    while (connection.socket.writable && connection.socket.write(requests));
  }
  connection.socket.on('drain', askOn)
  askOn()
  await connection.closed
})

test('connections over the limit are closed at once; those within it are served', async () => {
  const { open } = await serve({ connections: 20 })
  const within = await Promise.all(Array.from({ length: 20 }, open))
  const over = await Promise.all(Array.from({ length: 10 }, open))
  await Promise.all(over.map(({ closed }) => closed))
  const last = within.at(-1)
  last?.write(requestText('GET', '/health'))
  expect((await last?.answer())?.status).toBe(200)
})

test('the edge listens on a port of its own and passes customers only', async () => {
  const { server, key } = await serve()
  const connection = await openConnection(server.edge.port)
  connection.write(requestText('GET', '/api/v1/health', await key()))
  expect((await connection.answer()).status).toBe(403)
  connection.write(requestText('GET', '/health'))
  expect((await connection.answer()).status).toBe(200)
})

test('a stop lets a request finish, writes the key counters and closes the ports', async () => {
  const { open, server, store, key } = await serve()
  const token = await key()
  const connection = await open()
  connection.write(requestText('GET', '/api/v1/health', token))
  await connection.answer()

  const body = '{"username":"unknown","password":"whatever"}'
  connection.write(
    'POST /auth/login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n' +
      `Expect: 100-continue\r\nContent-Length: ${body.length}\r\n\r\n`,
  )
  expect((await connection.answer()).status).toBe(100)
  const stopped = servers.pop()?.stop()
  connection.write(body)
  expect((await connection.answer()).status).toBe(401)
  await stopped
  await connection.closed
  expect(await readValue(store, 'SELECT sum(request_count) FROM application_key')).toBe(1)
  await expect(openConnection(server.api.port)).rejects.toThrow('ECONNREFUSED')
})

test('of 800 concurrent requests none that begins after the revocation gets in', async () => {
  const { open, key, request } = await serve()
  const token = await key({ rate_limit_rpm: 100_000 })
  const admin = await key()
  const self = await request('/api/v1/application-keys/self', { token })
  const { uuid } = self.data<{ uuid: string }>()

  const connections = await Promise.all(Array.from({ length: 20 }, open))
  const health = requestText('GET', '/api/v1/health', token)
  const ask = (count: number) =>
    connections.flatMap((connection) => {
      connection.write(health.repeat(count))
      return Array.from({ length: count }, () => connection.answer())
    })
  const before = ask(20)
  const revoking = await open()
  revoking.write(requestText('DELETE', `/api/v1/application-keys/${uuid}`, admin))
  expect((await revoking.answer()).status).toBe(200)
  // From here on each request is sent after the revocation was answered; earlier ones may still
  // run.
  const after = ask(20)
  const statuses = new Set((await Promise.all(after)).map(({ status }) => status))
  expect(statuses).toEqual(new Set([401]))
  for (const { status } of await Promise.all(before)) expect([200, 401]).toContain(status)
})

test('one address gets so many connections; the next is told 503, counted, and what it asks is not done', async () => {
  const { open, key, store } = await serve({ connectionsPerAddress: 3 })
  const held = [await open(), await open(), await open()]
  const [token, fourth] = [await key(), await open()]
  const body = JSON.stringify({ name: 'late' })
  fourth.write(
    `POST /api/v1/application-keys HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  )
  const answer = await fourth.answer()
  expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '10'])
  expect(answer.body).toContain(envelope(503, 'service_unavailable'))
  await fourth.closed
  expect(await readRows(store, "SELECT 1 FROM application_key WHERE name = 'late'")).toEqual([])
  held[0]?.socket.destroy()
  await expect
    .poll(async () => {
      const next = await open()
      next.write(requestText('GET', '/health'))
      return next.answer().then(
        ({ status }) => status,
        () => 0,
      )
    })
    .toBe(200)
})
