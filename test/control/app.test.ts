import { expect, test } from 'vitest'
import { canonicalPath } from '../../control/http/paths.ts'
import { apiWith, openControl } from '../support/control.ts'

test('GET /health is public and bare', async () => {
  const { request } = await openControl()
  const answer = await request('/health')
  expect(answer.status).toBe(200)
  expect(answer.body).toEqual({ status: 'ok', service: 'tollgate', version: '0.0.0-test' })
})

test('GET /api/v1/health is success for a valid key, in the envelope', async () => {
  const { request, key } = await openControl()
  const answer = await request('/api/v1/health', { token: await key({ scopes: [] }) })
  expect(answer.status).toBe(200)
  expect(answer.body).toEqual({
    success: true,
    data: { status: 'ok', service: 'tollgate', version: '0.0.0-test' },
  })
})

test('/readyz is 503 before SIP is served and while the process drains; /livez is not', async () => {
  const { request, engine } = await openControl()
  expect((await request('/readyz')).status).toBe(200)
  engine.ready = false
  expect((await request('/readyz')).body).toMatchObject({ statusCode: 503, code: 'not_ready' })
  engine.ready = true
  engine.draining = true
  expect((await request('/readyz')).body).toMatchObject({ statusCode: 503, code: 'draining' })
  expect((await request('/livez')).status).toBe(200)
})

test.each([
  ['/auth/login', '/api/v1/auth/login'],
  ['/client/auth/login', '/api/client/auth/login'],
  ['/customers', '/api/v1/customers'],
  ['/customers/7/wallet', '/api/v1/customers/7/wallet'],
  ['/api/customers', '/api/v1/customers'],
  ['/api/v1/customers', '/api/v1/customers'],
  ['/telephony/originate', '/api/v1/telephony/originate'],
  ['/api/ocs/authorize', '/api/ocs/authorize'],
  ['/api/client/auth/me', '/api/client/auth/me'],
  ['/api/v1/client/auth/me', '/api/client/auth/me'],
  ['/api/v1/ocs/cdr', '/api/ocs/cdr'],
  ['/health', '/health'],
  ['/api/v1/health', '/api/v1/health'],
  ['/api/health', '/api/v1/health'],
  ['/metrics', '/metrics'],
  ['/metrics/telemetry', '/api/v1/metrics/telemetry'],
  ['/', '/'],
])('%s is served as %s', (alias, path) => {
  expect(canonicalPath(new Request(`http://localhost${alias}?q=1`))).toBe(path)
})

test('a session survives a restart, and not another secret', async () => {
  const control = await openControl()
  await control.user('ada', 'admin')
  const body = { username: 'ada', password: 'correct horse' }
  const { token } = (await control.request('/auth/login', { body })).data<{ token: string }>()
  const settings = { ...control.deps.settings, jwtSecret: 'another secret' }
  const statuses = [control.deps, { ...control.deps, settings }].map(
    async (deps) => (await control.request('/auth/me', { app: apiWith(deps), token })).status,
  )
  expect(await Promise.all(statuses)).toEqual([200, 401])
})
