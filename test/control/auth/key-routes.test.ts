import { expect, test } from 'vitest'
import { openControl, startOfTime, type Answer } from '../../support/control.ts'
import { readValue } from '../../support/stored.ts'

const PATH = '/api/v1/application-keys'
const hour = 3_600_000
const later = (ms: number) => new Date(startOfTime + ms).toISOString()

interface KeyData {
  readonly uuid: string
  readonly name: string
  readonly token: string
  readonly key_prefix: string
  readonly state: string
}

async function opened() {
  const control = await openControl()
  const token = await control.key()
  return {
    ...control,
    token,
    post: (body: unknown, path = '', from = token) =>
      control.request(`${PATH}${path}`, { token: from, body }),
    get: (path = '') => control.request(`${PATH}${path}`, { token }),
    patch: (uuid: string, body: unknown, from = token) =>
      control.request(`${PATH}/${uuid}`, { token: from, method: 'PATCH', body }),
    remove: (uuid: string) => control.request(`${PATH}/${uuid}`, { token, method: 'DELETE' }),
    health: (key: string) => control.request('/api/v1/health', { token: key }),
  }
}

const keyOf = (answer: Answer): KeyData => answer.data<KeyData>()

test('a new key is answered with 201, its Location, and its token this once', async () => {
  const { post, get, health } = await opened()
  const answer = await post({ name: 'monitoring' })
  const key = keyOf(answer)

  expect(answer.status).toBe(201)
  expect(answer.headers.get('location')).toBe(`${PATH}/${key.uuid}`)
  expect(answer.headers.get('cache-control')).toBe('no-store')
  expect(key.token).toMatch(/^sbc_live_[\w-]{64}$/)
  expect(key.key_prefix).toBe(key.token.slice(0, 12))
  expect((await health(key.token)).status).toBe(200)
  for (const shown of [await get(`/${key.uuid}`), await get()])
    expect(shown.text).not.toContain(key.token.slice(12))
})

test('a new key has the defaults of the specification', async () => {
  const { post } = await opened()
  expect((await post({ name: 'plain' })).data()).toMatchObject({
    kind: 'sbc',
    scopes: ['*:read'],
    rate_limit_rpm: 1_200,
    expires_at: null,
    state: 'active',
    tenant_scope: 'global',
    allowed_ips: [],
    request_count: 0,
  })
})

test.each([
  ['sbc', 'sbc_live_'],
  ['pbx', 'ak_'],
  ['billing', 'bill_'],
])('a token of kind %s begins with %s and 64 random characters follow', async (kind, literal) => {
  const { post, health } = await opened()
  const { token } = keyOf(await post({ name: 'key', kind }))
  expect(token.slice(0, literal.length)).toBe(literal)
  expect(token.slice(literal.length)).toMatch(/^[\w-]{64}$/)
  expect((await health(token)).status).toBe(200)
})

test('a key cannot grant what it lacks', async () => {
  const { post, key } = await opened()
  const limited = await key({ scopes: ['keys:*', 'cdrs:read'] })
  for (const scopes of [['*'], ['*:read'], ['dispatcher:read'], ['cdrs:*'], ['cdrs:write']]) {
    const answer = await post({ name: 'more', scopes }, '', limited)
    expect([scopes, answer.status, answer.code]).toEqual([scopes, 403, 'scope_escalation'])
  }
  expect((await post({ name: 'same', scopes: ['cdrs:read'] }, '', limited)).status).toBe(201)
})

test('a key that lacks a scope of another can neither edit nor rotate it', async () => {
  const { post, patch, key } = await opened()
  const { uuid } = keyOf(await post({ name: 'root', scopes: ['*'] }))
  const limited = await key({ scopes: ['keys:*'] })
  for (const answer of [
    await patch(uuid, { rate_limit_rpm: 1 }, limited),
    await post({}, `/${uuid}/rotate`, limited),
  ])
    expect([answer.status, answer.code]).toEqual([403, 'scope_escalation'])
})

test('PATCH keeps what is absent and clears what is null', async () => {
  const { post, patch } = await opened()
  const { uuid } = keyOf(
    await post({ name: 'key', description: 'old', expires_at: later(hour), rate_limit_rpm: 5 }),
  )
  expect((await patch(uuid, { description: null, expires_at: null })).body).toMatchObject({
    data: { name: 'key', description: null, expires_at: null, rate_limit_rpm: 5 },
  })
})

test('an edited key is judged by its new state from the next request on', async () => {
  const { post, patch, health, tick } = await opened()
  const { uuid, token } = keyOf(await post({ name: 'key' }))
  expect((await health(token)).status).toBe(200)

  await patch(uuid, { is_active: false })
  expect((await health(token)).status).toBe(401)
  await patch(uuid, { is_active: true })
  expect((await health(token)).status).toBe(200)

  await patch(uuid, { expires_at: later(hour) })
  tick(hour - 1)
  expect((await health(token)).status).toBe(200)
  tick(1)
  expect((await health(token)).status).toBe(401)
})

test('DELETE revokes for good: the token is dead, nothing brings the key back', async () => {
  const { post, patch, remove, health, get, tick } = await opened()
  const { uuid, token } = keyOf(await post({ name: 'key' }))
  await health(token)

  const revoked = await remove(uuid)
  expect(revoked.status).toBe(200)
  expect(revoked.body).toMatchObject({ data: { state: 'revoked', revoked_at: later(0) } })
  expect((await health(token)).status).toBe(401)
  for (const answer of [
    await patch(uuid, { is_active: true }),
    await patch(uuid, { name: 'other' }),
    await post({}, `/${uuid}/rotate`),
  ])
    expect([answer.status, answer.code]).toEqual([409, 'key_revoked'])
  expect((await get(`/${uuid}`)).body).toMatchObject({ data: { is_active: false } })
  tick(hour)
  const again = await remove(uuid)
  expect([again.status, again.body]).toMatchObject([200, { data: { revoked_at: later(0) } }])
})

test('within its grace the old token works, and not a moment longer; without one it ends at once', async () => {
  const { post, health, tick } = await opened()
  const old = keyOf(await post({ name: 'key' }))
  const answer = await post({ grace_seconds: 60 }, `/${old.uuid}/rotate`)
  expect([answer.status, answer.headers.get('cache-control')]).toEqual([201, 'no-store'])
  const renewed = keyOf(answer)
  tick(59_999)
  expect((await health(old.token)).status).toBe(200)
  tick(1)
  expect((await health(old.token)).status).toBe(401)
  expect((await health(renewed.token)).status).toBe(200)
  const newest = keyOf(await post({}, `/${old.uuid}/rotate`))
  expect((await health(renewed.token)).status).toBe(401)
  expect((await health(newest.token)).status).toBe(200)
})

test('a later rotation shortens the grace of every older token, and a revocation ends it', async () => {
  const { post, remove, health } = await opened()
  const first = keyOf(await post({ name: 'key' }))
  const second = keyOf(await post({ grace_seconds: 3_600 }, `/${first.uuid}/rotate`))
  await post({ grace_seconds: 0 }, `/${first.uuid}/rotate`)
  for (const { token } of [first, second]) expect((await health(token)).status).toBe(401)
  const other = keyOf(await post({ name: 'other' }))
  await post({ grace_seconds: 3_600 }, `/${other.uuid}/rotate`)
  expect((await health(other.token)).status).toBe(200)
  await remove(other.uuid)
  expect((await health(other.token)).status).toBe(401)
})

test('at most ten older tokens of a key work at once', async () => {
  const { post, store } = await opened()
  const { uuid } = keyOf(await post({ name: 'key' }))
  for (let i = 0; i < 15; i += 1) await post({ grace_seconds: 60 }, `/${uuid}/rotate`)
  const count = await readValue(store, 'SELECT count(*) FROM application_key_previous')
  expect(count).toBe(10)
})

test('an expired key is not rotated', async () => {
  const { post, tick } = await opened()
  const { uuid } = keyOf(await post({ name: 'key', expires_at: later(hour) }))
  tick(hour)
  const answer = await post({}, `/${uuid}/rotate`)
  expect([answer.status, answer.code]).toEqual([409, 'key_expired'])
})

test('lists are filtered by state and kind', async () => {
  const { post, patch, remove, get, tick } = await opened()
  await post({ name: 'alpha', kind: 'pbx' })
  const { uuid: beta } = keyOf(await post({ name: 'beta' }))
  await post({ name: 'gamma', expires_at: later(hour) })
  const { uuid: delta } = keyOf(await post({ name: 'delta' }))
  await patch(beta, { is_active: false })
  await remove(delta)
  tick(hour)
  const names = async (query: string) =>
    (await get(`?${query}`)).data<KeyData[]>().map(({ name }) => name)
  expect(await names('state=active&search=a')).toEqual(['alpha'])
  expect(await names('state=inactive')).toEqual(['beta'])
  expect(await names('state=expired')).toEqual(['gamma'])
  expect(await names('state=revoked')).toEqual(['delta'])
  expect(await names('kind=pbx')).toEqual(['alpha'])
  expect(await names('search=ALPHA')).toEqual(['alpha'])
})

test('a key can ask what it may do, whatever its scopes', async () => {
  const { key, request } = await opened()
  const token = await key({ scopes: ['cdrs:*'] })
  const self = await request(`${PATH}/self`, { token })
  expect(self.status).toBe(200)
  expect(self.body).toMatchObject({
    data: { scopes: ['cdrs:*'], permissions: ['cdrs:read', 'cdrs:write'] },
  })
  expect((await request(PATH, { token })).status).toBe(403)
})

test('an allow list admits only its networks, and rejected requests use no quota', async () => {
  const { key, request } = await opened()
  const token = await key({ allowed_ips: ['192.0.2.0/25', '2001:db8::/32'], rate_limit_rpm: 3 })
  const from = async (address: string) =>
    (await request('/api/v1/health', { token, from: address })).status
  for (let i = 0; i < 5; i += 1) expect(await from('192.0.2.128')).toBe(403)
  expect(await from('192.0.2.127')).toBe(200)
  expect(await from('::ffff:192.0.2.1')).toBe(200)
  expect(await from('2001:db8::7')).toBe(200)
  expect(await from('2001:db9::7')).toBe(403)
})

test('of two keys of one name that are created at once one is', async () => {
  const { key, request } = await openControl()
  const token = await key()
  const create = () => request(PATH, { token, body: { name: 'twice' } })
  const answers = await Promise.all([create(), create()])
  expect(answers.map(({ status }) => status).toSorted((one, other) => one - other)).toEqual([
    201, 409,
  ])
})

test('a key that is given more scopes at the same time is not handed out by one with fewer', async () => {
  const { key, request } = await openControl()
  const [root, poor] = [await key(), await key({ scopes: ['keys:write', 'cdrs:read'] })]
  const made = await request(PATH, { token: root, body: { name: 'node', scopes: ['cdrs:read'] } })
  const path = `${PATH}/${made.data<{ uuid: string }>().uuid}`
  const [widened, rotated] = await Promise.all([
    request(path, { token: root, method: 'PATCH', body: { scopes: ['*'] } }),
    request(`${path}/rotate`, { token: poor, body: {} }),
  ])
  // A server decides which was first: a token that is handed out before is one of a key with few
  // scopes.
  const { scopes } = rotated.status === 201 ? rotated.data<{ scopes: readonly string[] }>() : {}
  const isFirst = [200, 201, undefined, ['cdrs:read']]
  const isLast = [200, 403, 'scope_escalation', undefined]
  expect([isFirst, isLast]).toContainEqual([widened.status, rotated.status, rotated.code, scopes])
})
