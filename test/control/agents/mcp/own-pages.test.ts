import { errorHandler } from '../../../../control/http/front.ts'
import { Hono } from 'hono'
import { expect, test } from 'vitest'
import type { ControlEnv } from '../../../../control/http/control-env.ts'
import { ownPages } from '../../../../control/agents/mcp/mcp-request.ts'
import { openControl } from '../../../support/control.ts'
import { serve } from '../../../support/in-memory-http.ts'

const routes = new Hono<ControlEnv>()
routes.onError(errorHandler(() => undefined))
routes.all('/mcp', ownPages(['gate.example.com']), (c) => c.text('in'))
const app = serve(routes)

const statusOf = async (host: string, origin?: string): Promise<number> => {
  const headers = { host, ...(origin !== undefined && { origin }) }
  return (await app.request('/mcp', { method: 'POST', headers })).status
}

test.each([
  'localhost',
  'localhost:8080',
  '127.0.0.1:8080',
  '[::1]:8080',
  '192.0.2.7:8080',
  'gate.example.com',
  'Gate.Example.com:443',
  '[2001:db8::1]',
])('a program that asks for %s comes in', async (host) => {
  expect(await statusOf(host)).toBe(200)
})

test.each(['evil.example.com', 'localhost.evil.example.com', '', 'gate.example.com.evil'])(
  'the host "%s", which a foreign DNS name may be, is refused',
  async (host) => {
    expect(await statusOf(host)).toBe(403)
  },
)

test.each(['a b', '@localhost'])('a request with the invalid host "%s" is 400', async (host) => {
  expect(await statusOf(host)).toBe(400)
})

test.each([
  ['localhost:8080', 'http://localhost:3000', 200],
  ['localhost:8080', 'http://127.0.0.1:6274', 200],
  ['192.0.2.7:8080', 'http://192.0.2.7:8080', 200],
  ['gate.example.com', 'https://gate.example.com', 200],
  ['localhost:8080', 'https://gate.example.com', 200],
  ['localhost:8080', 'https://evil.example.com', 403],
  ['localhost:8080', 'http://192.0.2.66', 403],
  ['localhost:8080', 'null', 403],
  ['localhost:8080', 'http://localhost.evil.example.com', 403],
  ['localhost:8080', 'http://localhost@evil.example.com', 403],
])('a page: host %s, origin %s: %d', async (host, origin, status) => {
  expect(await statusOf(host, origin)).toBe(status)
})

test('/mcp asks for the origin before the key, and says how more hosts are allowed', async () => {
  const { app: api, key } = await openControl()
  const headers = { host: 'evil.example.com', authorization: `Bearer ${await key()}` }
  const answer = await api.request('/mcp', { method: 'POST', headers })
  expect(answer.status).toBe(403)
  expect(await answer.json()).toMatchObject({ code: 'origin_not_allowed' })
})
