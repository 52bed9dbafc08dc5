/** The cost of strangers at the public edge, and batches of agents. */
import { expect, test } from 'vitest'
import { PasswordCheck } from '../../control/auth/password-check.ts'
import { openControl } from '../support/control.ts'
import { excessOf } from '../../control/http/body.ts'

test('before a credential is known, a login holds 4 kB, and other bodies of customers 16 kB', async () => {
  const { request, app, edge } = await openControl()
  const post = (path: string, bytes: number, served = edge) =>
    request(path, {
      app: served,
      method: 'POST',
      body: JSON.stringify({ email: 'x'.repeat(bytes), password: 'y' }),
    })
  expect((await post('/api/client/auth/login', 5_000)).status).toBe(413)
  expect((await post('/api/client/payments/webhook', 300_000)).status).toBe(413)
  expect((await post('/api/client/auth/logout', 20_000)).status).toBe(413)
  for (const path of ['/api/v1/auth/login', '/api/v1/auth/session', '/api/client/auth/login'])
    expect((await post(path, 5_000, app)).status).toBe(413)
})

test('brackets are counted before JSON is parsed, in texts they do not count', () => {
  const tooDeep = 'is nested deeper than 32 levels'
  expect(excessOf('['.repeat(129))).toBe(tooDeep)
  expect(excessOf('{"a":'.repeat(500_000))).toBe(tooDeep)
  expect(excessOf(`["${'['.repeat(1_000)}\\"${'{'.repeat(1_000)}"]`)).toBeUndefined()
  expect(excessOf('[]'.repeat(1_000))).toBeUndefined()
})

test('names are counted before JSON is parsed, and colons in texts are none', () => {
  const named = (count: number) => `{${Array.from({ length: count }, () => '"a:b":":"').join()}}`
  expect(excessOf(named(2_000))).toBeUndefined()
  expect(excessOf(named(2_001))).toBe('has more than 2000 names')
})

test('logins of strangers under way do not lock the staff out', async () => {
  const { request, edge, user } = await openControl()
  await user('root', 'admin')
  const strangers = Array.from({ length: 200 }, (_, index) =>
    request('/api/client/auth/login', {
      app: edge,
      method: 'POST',
      from: `198.51.100.${index}`,
      body: { email: `x${index}@example.com`, password: 'wrong horse' },
    }),
  )
  const body = { username: 'root', password: 'correct horse' }
  const login = await request('/api/v1/auth/login', { method: 'POST', from: '192.0.2.1', body })
  expect(login.status).toBe(200)
  const answers = await Promise.all(strangers)
  const busy = answers.filter(({ status }) => status === 503)
  expect(busy.length).toBeGreaterThan(0)
  for (const { headers } of busy) expect(headers.get('Retry-After')).not.toBeNull()
})

test('one password is hashed at a time, and addresses have their turns', async () => {
  const passwords = new PasswordCheck()
  await passwords.prepare()
  const done: string[] = []
  const ask = (source: string) =>
    passwords.matches('x', null, { lane: 'customers', source }).then(
      () => void done.push(source),
      () => void done.push(`no ${source}`),
    )
  const many = Array.from({ length: 12 }, () => ask('flood'))
  await Promise.all([...many, ask('customer')])
  expect(done.filter((each) => each === 'no flood')).toHaveLength(3)
  const served = done.filter((each) => !each.startsWith('no'))
  expect(served.indexOf('customer')).toBeLessThanOrEqual(2)
})

test('a batch counts as its members for the rate limit', async () => {
  const { request, key } = await openControl()
  const token = await key({ rate_limit_rpm: 20 })
  const member = (id: number) => ({
    jsonrpc: '2.0',
    id,
    method: 'tools/call',
    params: { name: 'get_system_telemetry', arguments: {} },
  })
  const batch = (count: number) =>
    request('/mcp', {
      token,
      method: 'POST',
      body: Array.from({ length: count }, (_, id) => member(id)),
      headers: {
        Accept: 'application/json, text/event-stream',
        'MCP-Protocol-Version': '2025-03-26',
      },
    })
  const first = await batch(12)
  expect(first.headers.get('X-RateLimit-Remaining')).toBe('8')
  expect((await batch(12)).status).toBe(429)
  expect((await batch(51)).status).toBe(429)
  const other = await key({ rate_limit_rpm: 1_000 })
  const large = Array.from({ length: 51 }, (_, id) => member(id))
  const refused = await request('/mcp', { token: other, method: 'POST', body: large })
  expect(refused.code).toBe('batch_too_large')
})
