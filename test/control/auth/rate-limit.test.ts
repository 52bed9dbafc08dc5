import { expect, test } from 'vitest'
import { openControl, startOfTime, type Answer } from '../../support/control.ts'

const HEALTH = '/api/v1/health'
const startSecond = startOfTime / 1_000

const limitsOf = ({ headers }: Answer) => ({
  limit: headers.get('x-ratelimit-limit'),
  remaining: headers.get('x-ratelimit-remaining'),
  reset: headers.get('x-ratelimit-reset'),
})

test('each answer tells limit, what remains, and when the oldest hit leaves', async () => {
  const { key, request, tick } = await openControl()
  const token = await key({ rate_limit_rpm: 5 })
  const first = await request(HEALTH, { token })
  expect(limitsOf(first)).toEqual({ limit: '5', remaining: '4', reset: `${startSecond + 60}` })
  tick(10_500)
  const second = await request(HEALTH, { token })
  expect(limitsOf(second)).toEqual({ limit: '5', remaining: '3', reset: `${startSecond + 60}` })
  expect(second.headers.get('ratelimit-policy')).toBe('"key";q=5;w=60')
  expect(second.headers.get('ratelimit')).toBe('"key";r=3;t=50')
  tick(50_000)
  const third = await request(HEALTH, { token })
  expect(limitsOf(third)).toEqual({ limit: '5', remaining: '3', reset: `${startSecond + 71}` })
})

test('the request over the limit is 429 with Retry-After, and so is the next until then', async () => {
  const { key, request, tick } = await openControl()
  const token = await key({ rate_limit_rpm: 2 })
  await request(HEALTH, { token })
  tick(20_000)
  await request(HEALTH, { token })
  const denied = await request(HEALTH, { token })
  expect([denied.status, denied.code]).toEqual([429, 'rate_limited'])
  expect(denied.headers.get('retry-after')).toBe('40')
  expect(limitsOf(denied).remaining).toBe('0')
  tick(39_999)
  expect((await request(HEALTH, { token })).status).toBe(429)
  tick(1)
  expect((await request(HEALTH, { token })).status).toBe(200)
  expect((await request(HEALTH, { token })).status).toBe(429)
})

test('1200 requests per minute pass by default, the 1201st does not', async () => {
  const { key, access, now } = await openControl()
  const presented = await access.verifier.verify(await key(), '192.0.2.1', now())
  if (presented.kind !== 'accepted') throw new Error('the key is not valid')
  const { window } = access.limits.forPrincipal(presented.principal)
  for (let i = 0; i < 1_200; i += 1) expect(window.admit(now())).toBe(true)
  expect(window.admit(now())).toBe(false)
})

test('a rotated token shares the quota of its key', async () => {
  const { key, request } = await openControl()
  const admin = await key()
  const token = await key({ rate_limit_rpm: 2 })
  const { uuid } = (await request('/api/v1/application-keys/self', { token })).data<{
    uuid: string
  }>()
  const rotated = await request(`/api/v1/application-keys/${uuid}/rotate`, {
    token: admin,
    body: { grace_seconds: 60 },
  })
  await request(HEALTH, { token })
  const renewed = rotated.data<{ token: string }>().token
  expect((await request(HEALTH, { token: renewed })).status).toBe(429)
})

test.each([
  ['200 without a key', '/health', {}, 200],
  ['401', HEALTH, {}, 401],
  ['401 of an unknown key', HEALTH, { token: `sbc_live_${'x'.repeat(64)}` }, 401],
  ['404', '/api/v1/nowhere', {}, 404],
  ['405', '/health', { method: 'DELETE' }, 405],
  ['preflight', HEALTH, { method: 'OPTIONS' }, 204],
  ['400', '/api/v1/auth/login', { body: '{' }, 400],
])(
  "the %s answer carries the headers of the caller's address",
  async (_, path, options, status) => {
    const { request } = await openControl()
    const answer = await request(path, { ...options, from: '198.51.100.1' })
    expect(answer.status).toBe(status)
    expect(limitsOf(answer)).toEqual({
      limit: expect.stringMatching(/^\d+$/),
      remaining: expect.stringMatching(/^\d+$/),
      reset: `${startSecond + 60}`,
    })
    const again = await request(path, { ...options, from: '198.51.100.1' })
    expect(Number(limitsOf(again).remaining)).toBe(Number(limitsOf(answer).remaining) - 1)
  },
)

test('requests without a valid credential are limited by address; keys are not affected', async () => {
  const { key, request, access, now } = await openControl()
  const { window } = access.limits.forAddress('198.51.100.1')
  while (window.admit(now()));
  const denied = await request('/health', { from: '198.51.100.1' })
  expect(denied.status).toBe(429)
  expect(denied.headers.get('retry-after')).toBe('60')
  expect((await request('/health', { from: '198.51.100.2' })).status).toBe(200)
  expect((await request(HEALTH, { token: await key(), from: '198.51.100.1' })).status).toBe(200)
})

test('a flood from ever new addresses takes bounded memory', async () => {
  const { access } = await openControl()
  const first = access.limits.forAddress('10.0.0.0')
  for (let i = 0; i < 20_001; i += 1) access.limits.forAddress(`address ${i}`)
  expect(access.limits.forAddress('10.0.0.0')).not.toBe(first)
})

test("a node's questions about calls are not held to its key's requests per minute", async () => {
  const { key, request } = await openControl()
  const token = await key({ rate_limit_rpm: 2, scopes: ['ocs', 'keys:read'] })
  for (let i = 0; i < 5; i += 1) {
    const answer = await request('/api/ocs/authorize?caller=1&callee=2', { token })
    expect([answer.status, answer.headers.get('x-ratelimit-limit')]).toEqual([404, '1200000'])
  }
  expect(limitsOf(await request(HEALTH, { token }))).toMatchObject({ limit: '2', remaining: '1' })
  const reader = await key({ rate_limit_rpm: 2, scopes: ['*:read'] })
  const statuses = []
  for (let i = 0; i < 3; i += 1)
    statuses.push((await request('/api/ocs/authorize?caller=1&callee=2', { token: reader })).status)
  expect(statuses).toEqual([403, 403, 429])
})
