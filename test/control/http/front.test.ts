import { expect, test } from 'vitest'
import { openControl } from '../../support/control.ts'

test('a correlation id is echoed, and stands in the error envelope', async () => {
  const { request } = await openControl()
  const headers = { 'X-Correlation-ID': 'order-4711/a' }
  const answer = await request('/api/v1/health', { headers })
  expect(answer.headers.get('x-correlation-id')).toBe('order-4711/a')
  expect(answer.body).toMatchObject({ request_id: 'order-4711/a' })
})

test.each([undefined, '', 'a b', 'x'.repeat(129), 'é', '"><script>'])(
  'instead of the correlation id %s a new one is made',
  async (given) => {
    const { request } = await openControl()
    const ask = async () => {
      const headers = given === undefined ? {} : { 'X-Correlation-ID': given }
      return (await request('/health', { headers })).headers.get('x-correlation-id')
    }
    const [one, other] = [await ask(), await ask()]
    expect(one).toMatch(/^[\w-]{8,}$/)
    expect(one).not.toBe(other)
    expect(one).not.toBe(given)
  },
)

test('a preflight allows exactly the headers of the specification, the tenant, the idempotency key and the version', async () => {
  const { request } = await openControl()
  const answer = await request('/api/v1/application-keys', {
    method: 'OPTIONS',
    headers: { Origin: 'https://crm.example', 'Access-Control-Request-Method': 'POST' },
  })
  expect([answer.status, answer.text]).toEqual([204, ''])
  expect(answer.headers.get('access-control-allow-origin')).toBe('*')
  const allowed = answer.headers.get('access-control-allow-headers')?.split(', ')
  expect(allowed?.toSorted()).toEqual([
    'Authorization',
    'Content-Type',
    'Idempotency-Key',
    'If-Match',
    'X-API-Key',
    'X-Correlation-ID',
    'X-Customer-ID',
    'X-Tenant-Slug',
  ])
})

test.each([200, 401, 404])('a page of another origin may read a %i answer', async (status) => {
  const { request, key } = await openControl()
  const path = status === 404 ? '/api/v1/nowhere' : '/api/v1/health'
  const answer = await request(path, {
    headers: { Origin: 'https://crm.example' },
    ...(status === 200 && { token: await key() }),
  })
  expect(answer.status).toBe(status)
  expect(answer.headers.get('access-control-allow-origin')).toBe('*')
  expect(answer.headers.get('access-control-expose-headers')).toContain('X-RateLimit-Remaining')
  expect(answer.headers.has('access-control-allow-credentials')).toBe(false)
})

test('no answer is cached, sniffed or framed', async () => {
  const { request } = await openControl()
  for (const path of ['/health', '/api/v1/health', '/nowhere']) {
    const { headers } = await request(path)
    expect(headers.get('cache-control')).toBe('no-store')
    expect(headers.get('x-content-type-options')).toBe('nosniff')
    expect(headers.get('content-security-policy')).toContain("frame-ancestors 'none'")
  }
})

test.each([
  ['GET', '/api/v1/users'],
  ['GET', '/api/v1/health'],
  ['GET', '/api/v1/application-keys'],
  ['POST', '/api/v1/auth/login'],
  ['POST', '/auth/login'],
  ['GET', '/nowhere'],
  ['GET', '/readyz'],
  ['GET', '/metrics'],
  ['GET', '/api/ocs/authorize'],
  ['GET', '/api/client/../v1/users'],
  ['GET', '/api/client%2f..%2fv1/users'],
  ['GET', '/client/auth/me'],
  ['GET', '/api/v1/client/auth/me'],
  ['POST', '/health'],
  ['OPTIONS', '/api/v1/users'],
  ['OPTIONS', '/metrics'],
])('the customer edge answers 403 to %s %s for every caller', async (method, path) => {
  const { request, edge, key } = await openControl()
  for (const credential of [{}, { token: await key() }]) {
    const answer = await request(path, { app: edge, method, ...credential })
    expect([answer.status, answer.code]).toEqual([403, 'forbidden'])
    expect(answer.headers.get('x-ratelimit-limit')).toMatch(/^\d+$/)
  }
})

test('the customer edge passes /health and /api/client/', async () => {
  const { request, edge } = await openControl()
  expect((await request('/health', { app: edge })).status).toBe(200)
  expect((await request('/api/client/auth/me', { app: edge })).status).toBe(401)
  expect((await request('/api/client/nowhere', { app: edge })).status).toBe(404)
  for (const path of ['/health', '/api/client/auth/me'])
    expect((await request(path, { app: edge, method: 'OPTIONS' })).status).toBe(204)
})
