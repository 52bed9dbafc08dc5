import { expect, test } from 'vitest'
import { openControl } from '../../support/control.ts'
import { clientId, clientSecret, openProvider } from '../../support/openid-provider.ts'
import { readRows, readValue, runSql } from '../../support/stored.ts'

const publicUrl = 'https://tollgate.example'
const callback = `${publicUrl}/api/v1/auth/callback/1`

const mappings = [
  { value: 'voice-admins', role: 'admin' },
  { value: 'voice', role: 'operator' },
  { value: 'acme-voice', role: 'operator', tenant: 'acme' },
]

async function opened({ change = {}, tenantSlug }: { change?: object; tenantSlug?: string } = {}) {
  const control = await openControl({ publicUrl, allowsPrivateTargets: true })
  await control.user('root', 'admin')
  await control.tenant('acme')
  const provider = await openProvider(callback)
  const token = await control.key()
  const made = await control.request('/api/v1/identity-providers', {
    token,
    headers: tenantSlug === undefined ? {} : { 'X-Tenant-Slug': tenantSlug },
    body: {
      name: 'Company',
      issuer: provider.issuer,
      client_id: clientId,
      client_secret: clientSecret,
      role_mappings: tenantSlug === undefined ? mappings : mappings.slice(0, 2),
      ...change,
    },
  })
  expect([made.status, made.text]).toEqual([201, made.text])
  const start = async () => {
    const answer = await control.request('/api/v1/auth/providers/1/start')
    const cookie = answer.headers.get('set-cookie')?.split(';', 1)[0] ?? ''
    return { answer, cookie, url: answer.headers.get('location') ?? '' }
  }
  const finish = async (back: string, cookie: string) => {
    const { pathname, search } = new URL(back)
    const answer = await control.request(`${pathname}${search}`, {
      headers: { cookie, 'user-agent': 'a browser' },
    })
    const session = /__Host-tollgate_session=([^;]+)/.exec(answer.headers.get('set-cookie') ?? '')
    return { answer, to: answer.headers.get('location'), token: session?.[1] }
  }
  /** The whole way of a browser. */
  const signIn = async (subject: string) => {
    const { cookie, url } = await start()
    return finish(await provider.signIn(url, subject), cookie)
  }
  const profile = async (session: string | undefined) =>
    (await control.request('/api/v1/auth/me', { token: session ?? '' })).data<{
      username: string
      role: string
      tenant_slug: string | null
    }>()
  return { ...control, token, provider, start, finish, signIn, profile }
}

test('whoever has a mapped group is made a user with its role, and the session is a cookie', async () => {
  const { provider, signIn, profile, request, token } = await opened()
  provider.people.set('sub-1', { groups: ['staff', 'voice'], preferred_username: 'Ada' })
  const { answer, to, token: session } = await signIn('sub-1')
  expect([answer.status, to]).toEqual([302, '/console'])
  expect(answer.headers.get('set-cookie')).toMatch(
    /__Host-tollgate_session=[^;]+; Max-Age=3600; Path=\/; HttpOnly; Secure; SameSite=Strict/,
  )
  expect(await profile(session)).toMatchObject({
    username: 'ada',
    role: 'operator',
    tenant_slug: null,
  })
  const audit = await request('/api/v1/audit?action=GET', { token })
  expect(audit.body).toMatchObject({
    data: [{ actor: 'user:ada', target: 'identity provider Company', outcome: 'success' }],
  })
})

test('the request has PKCE, state and nonce, and its cookie is Lax for ten minutes', async () => {
  const { start, provider } = await opened()
  const { answer, url } = await start()
  const query = new URL(url).searchParams
  expect(url.startsWith(`${provider.issuer}/auth?`)).toBe(true)
  expect(Object.fromEntries(query)).toMatchObject({
    response_type: 'code',
    client_id: clientId,
    redirect_uri: callback,
    scope: 'openid profile email',
    code_challenge_method: 'S256',
  })
  for (const name of ['state', 'nonce', 'code_challenge'])
    expect(query.get(name)).toMatch(/^[\w-]{43}$/)
  expect(answer.headers.get('set-cookie')).toMatch(
    /^__Host-tollgate_sign_in=[^;]+; Max-Age=600; Path=\/; HttpOnly; Secure; SameSite=Lax$/,
  )
})

test('the role of a user follows the claim at each sign-in; without one the sessions end', async () => {
  const { provider, signIn, profile, request, store } = await opened()
  provider.people.set('sub-1', { groups: 'voice', preferred_username: 'ada' })
  const first = await signIn('sub-1')
  provider.people.set('sub-1', { groups: ['voice-admins'], preferred_username: 'renamed' })
  const second = await signIn('sub-1')
  expect(await profile(second.token)).toMatchObject({ username: 'ada', role: 'admin' })
  provider.people.set('sub-1', { groups: ['other'] })
  const third = await signIn('sub-1')
  expect([third.to, third.token]).toEqual(['/console?sign_in=no_role', undefined])
  for (const { token } of [first, second])
    expect((await request('/api/v1/auth/me', { token: token ?? '' })).status).toBe(401)
  expect(await readValue(store, 'SELECT count(*) FROM user_identity')).toBe(1)
})

test('whoever has no mapped group is refused, and no user is made', async () => {
  const { provider, signIn, store, request, token } = await opened()
  const cases = [{}, { groups: ['x'] }, { groups: { voice: true } }, { groups: [['voice']] }]
  for (const [index, person] of cases.entries()) {
    provider.people.set(`sub-${index}`, person)
    expect((await signIn(`sub-${index}`)).to).toBe('/console?sign_in=no_role')
  }
  expect(await readValue(store, 'SELECT count(*) FROM "user"')).toBe(1)
  const audit = await request('/api/v1/audit?action=GET&outcome=refused', { token })
  expect(audit.body).toMatchObject({ data: [{ code: 'no_role', actor: 'anonymous' }, {}, {}, {}] })
})

test('a name or an address alone links nobody: the new user gets another name', async () => {
  const { provider, signIn, profile, access } = await opened()
  provider.people.set('sub-1', {
    groups: ['voice'],
    preferred_username: 'root',
    email: 'root@example.com',
  })
  const { username, role } = await profile((await signIn('sub-1')).token)
  expect([username, role]).toEqual([expect.stringMatching(/^root\.[\da-f]{8}$/), 'operator'])
  expect((await access.users.byUsername('root'))[0]?.role).toBe('admin')
  expect((await profile((await signIn('sub-1')).token)).username).toBe(username)
})

test('an answer counts once, in the browser that has asked, within ten minutes', async () => {
  const { provider, start, finish, tick } = await opened()
  provider.people.set('sub-1', { groups: ['voice'], preferred_username: 'ada' })
  const [one, two] = [await start(), await start()]
  const back = await provider.signIn(one.url, 'sub-1')
  const expired = '/console?sign_in=expired'
  expect((await finish(back, two.cookie)).to).toBe(expired)
  expect((await finish(back, '')).to).toBe(expired)
  expect((await finish(back, `${one.cookie}x`)).to).toBe(expired)
  expect((await finish(back.replace(/state=[^&]+/, 'state=x'), one.cookie)).to).toBe(expired)
  expect((await finish(back, one.cookie)).to).toBe('/console')
  expect((await finish(back, one.cookie)).to).toBe('/console?sign_in=provider_unavailable')
  const late = await start()
  const lateBack = await provider.signIn(late.url, 'sub-1')
  tick(600_000)
  expect((await finish(lateBack, late.cookie)).to).toBe(expired)
})

test('a code of another attempt is refused: the verifier and the nonce do not match', async () => {
  const { provider, start, finish } = await opened()
  provider.people.set('sub-1', { groups: ['voice'], preferred_username: 'ada' })
  const [victim, attacker] = [await start(), await start()]
  const stolen = new URL(await provider.signIn(attacker.url, 'sub-1')).searchParams.get('code')
  const back = new URL(await provider.signIn(victim.url, 'sub-1'))
  back.searchParams.set('code', stolen ?? '')
  expect((await finish(back.href, victim.cookie)).to).toBe('/console?sign_in=provider_unavailable')
})

test('a provider that is down is said, and passwords still work', async () => {
  const { provider, start, request, logged } = await opened()
  await provider.stop()
  expect((await start()).url).toBe('/console?sign_in=provider_unavailable')
  const login = { username: 'root', password: 'correct horse' }
  expect((await request('/api/v1/auth/login', { body: login })).status).toBe(200)
  expect(JSON.stringify(logged)).toContain('a provider cannot be reached')
})

test('what a provider says of itself is asked for once an hour', async () => {
  const { provider, start, tick } = await opened()
  await Promise.all([start(), start(), start()])
  expect(provider.discoveries()).toBe(1)
  tick(3_600_000)
  await start()
  expect(provider.discoveries()).toBe(2)
})

test('users of a provider of the platform may be those of a tenant', async () => {
  const { provider, signIn, profile } = await opened()
  provider.people.set('sub-1', { groups: ['acme-voice'], preferred_username: 'tom' })
  expect(await profile((await signIn('sub-1')).token)).toMatchObject({ tenant_slug: 'acme' })
  provider.people.set('sub-1', { groups: ['voice'], preferred_username: 'tom' })
  expect(await profile((await signIn('sub-1')).token)).toMatchObject({ tenant_slug: null })
})

test('a provider of a tenant makes users of that tenant alone, and is offered there alone', async () => {
  const { provider, signIn, profile, request, token } = await opened({ tenantSlug: 'acme' })
  provider.people.set('sub-1', { groups: ['voice-admins'], preferred_username: 'root' })
  expect(await profile((await signIn('sub-1')).token)).toMatchObject({
    username: 'root',
    tenant_slug: 'acme',
  })
  const offered = async (query: string) => (await request(`/api/v1/auth/providers${query}`)).body
  expect(await offered('')).toMatchObject({ data: [] })
  expect(await offered('?tenant=acme')).toMatchObject({
    data: [{ id: 1, name: 'Company', start_url: `${publicUrl}/api/v1/auth/providers/1/start` }],
  })
  const boss = await request('/api/v1/identity-providers', {
    token,
    headers: { 'X-Tenant-Slug': 'acme' },
    body: {
      name: 'Other',
      issuer: 'https://login.example',
      client_id: 'x',
      role_mappings: [{ value: 'x', role: 'admin', tenant: 'unheard-of' }],
    },
  })
  expect(boss.status).toBe(400)
})

test('sessions end when their provider is switched off or deleted; its users stay known', async () => {
  const { provider, signIn, request, token, store } = await opened()
  provider.people.set('sub-1', { groups: ['voice'], preferred_username: 'ada' })
  const path = '/api/v1/identity-providers/1'
  const me = async (session: string | undefined) =>
    (await request('/api/v1/auth/me', { token: session ?? '' })).status
  const first = await signIn('sub-1')
  await request(path, { token, method: 'PATCH', body: { is_enabled: false } })
  expect(await me(first.token)).toBe(401)
  expect((await request('/api/v1/auth/providers/1/start')).status).toBe(404)
  await request(path, { token, method: 'PATCH', body: { is_enabled: true } })
  const second = await signIn('sub-1')
  expect(await me(second.token)).toBe(200)
  await request(path, { token, method: 'DELETE' })
  expect(await me(second.token)).toBe(401)
  expect(await readRows(store, 'SELECT subject FROM user_identity')).toEqual([{ subject: 'sub-1' }])
})

test('a user who was switched off stays so', async () => {
  const { provider, signIn, store } = await opened()
  provider.people.set('sub-1', { groups: ['voice'], preferred_username: 'ada' })
  await signIn('sub-1')
  await runSql(store, `UPDATE "user" SET is_active = 0 WHERE username = 'ada'`)
  expect((await signIn('sub-1')).to).toBe('/console?sign_in=inactive')
})

test('the secret of the client is shown nowhere, and is not sent to another issuer', async () => {
  const { request, token, store, logged, provider } = await opened()
  const path = '/api/v1/identity-providers/1'
  const seen = [JSON.stringify(logged)]
  for (const each of [path, '/api/v1/identity-providers', '/api/v1/changes', '/api/v1/audit'])
    seen.push((await request(each, { token })).text)
  for (const table of ['identity_provider', 'change_entry', 'audit_entry'])
    seen.push(JSON.stringify(await readRows(store, `SELECT * FROM ${table}`)))
  for (const text of seen) expect(text).not.toContain(clientSecret)
  const move = (body: object) => request(path, { token, method: 'PATCH', body })
  const issuer = `${provider.issuer}/other`
  expect((await move({ issuer })).body).toMatchObject({ details: [{ path: 'client_secret' }] })
  expect((await move({ issuer, client_secret: 'another' })).status).toBe(200)
})

test('nobody gives away a role that goes beyond its own scopes', async () => {
  const { request, key } = await opened()
  const token = await key({ scopes: ['users:write', 'users:read'] })
  const body = {
    name: 'Mine',
    issuer: 'https://login.example',
    client_id: 'x',
    role_mappings: [{ value: 'x', role: 'admin' }],
  }
  const answer = await request('/api/v1/identity-providers', { token, body })
  expect([answer.status, answer.code]).toEqual([403, 'insufficient_scope'])
  const patch = { role_mappings: body.role_mappings }
  const changed = await request('/api/v1/identity-providers/1', {
    token,
    method: 'PATCH',
    body: { ...patch, name: 'Mine' },
  })
  expect(changed.status).toBe(403)
})

test('a provider is reached at public addresses by https alone, unless private ones are allowed', async () => {
  const control = await openControl({ publicUrl })
  const token = await control.key()
  const body = { name: 'x', client_id: 'x', role_mappings: [{ value: 'x', role: 'auditor' }] }
  for (const issuer of [
    'http://login.example',
    'https://127.0.0.1',
    'https://10.0.0.1:8443/x',
    'https://u:p@login.example',
    'ftp://login.example',
    'https://login.example/?a=b',
    'nonsense',
  ]) {
    const answer = await control.request('/api/v1/identity-providers', {
      token,
      body: { ...body, issuer },
    })
    expect([issuer, answer.status]).toEqual([issuer, 400])
  }
})
