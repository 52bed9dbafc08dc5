import { expect, test } from 'vitest'
import { openControl } from '../../support/control.ts'

interface Seen {
  readonly session_id: string
  readonly is_current: boolean
}

async function opened() {
  const control = await openControl()
  await control.user('root', 'admin')
  await control.user('ada', 'operator')
  let attempts = 0
  const login = async (username: string, from?: string, agent = 'test') => {
    const answer = await control.request('/api/v1/auth/login', {
      body: { username, password: 'correct horse' },
      headers: { 'user-agent': agent },
      from: from ?? `198.51.${Math.floor((attempts += 1) / 200)}.${attempts % 200}`,
    })
    return answer.data<{ token: string }>().token
  }
  const sessions = async (token: string, path = '/auth/sessions') =>
    (await control.request(`/api/v1${path}`, { token })).data<readonly Seen[]>()
  const me = async (token: string) => (await control.request('/api/v1/auth/me', { token })).status
  const idOf = async (name: string) => (await control.access.users.byUsername(name))[0]?.id ?? 0
  return { ...control, login, sessions, me, idOf }
}

test('a user sees since when, from where and with which program each session is used', async () => {
  const { login, sessions, request, tick, access } = await opened()
  const token = await login('ada', '192.0.2.7', `Mozilla/5.0 ${'x'.repeat(500)}`)
  tick(120_000)
  const other = await login('ada', '192.0.2.8', 'curl/8')
  tick(60_000)
  await request('/api/v1/auth/me', { token, from: '192.0.2.9' })
  await access.tick()
  expect(await sessions(other)).toMatchObject([
    { is_current: true, address: '192.0.2.8', user_agent: 'curl/8' },
    {
      is_current: false,
      since: '2026-01-01T00:00:00.000Z',
      last_seen_at: '2026-01-01T00:03:00.000Z',
      expires_at: '2026-01-01T01:00:00.000Z',
      address: '192.0.2.9',
      user_agent: expect.stringMatching(/^Mozilla.{193}$/) as string,
    },
  ])
})

test('a user ends one of its sessions, or all others', async () => {
  const { login, sessions, me, request } = await opened()
  const [first, second, third] = [await login('ada'), await login('ada'), await login('ada')]
  const [newest] = await sessions(first)
  const end = (path: string) =>
    request(`/api/v1/auth/sessions${path}`, { token: first, method: 'DELETE' })
  expect((await end(`/${newest?.session_id}`)).status).toBe(200)
  expect([await me(second), await me(third)]).toEqual([200, 401])
  expect((await end(`/${newest?.session_id}`)).status).toBe(404)
  expect((await end('')).body).toMatchObject({ data: { ended: 1 } })
  expect([await me(first), await me(second)]).toEqual([200, 401])
  expect(await sessions(first)).toHaveLength(1)
})

test('sessions that were logged out, expired, or of an earlier password are not listed', async () => {
  const { login, sessions, request, tick, access, idOf } = await opened()
  const out = await login('ada')
  await request('/api/v1/auth/logout', { token: out, method: 'POST' })
  await login('ada')
  tick(3_600_000)
  const before = await login('ada')
  expect(await sessions(before)).toHaveLength(1)
  const root = await login('root')
  const id = await idOf('ada')
  await request(`/api/v1/users/${id}`, {
    token: root,
    method: 'PATCH',
    body: { password: 'another horse' },
  })
  expect(await sessions(root, `/users/${id}/sessions`)).toEqual([])
  await access.tick()
})

test('nobody ends or sees the sessions of others, but an administrator of the tenant', async () => {
  const { login, sessions, me, request, idOf, tenant, user } = await opened()
  const acme = await tenant('acme')
  await user('boss', 'admin', acme)
  await user('tom', 'operator', acme)
  const [ada, boss, tom] = [await login('ada'), await login('boss'), await login('tom')]
  const [ofAda] = await sessions(ada)
  const ended = await request(`/api/v1/auth/sessions/${ofAda?.session_id}`, {
    token: boss,
    method: 'DELETE',
  })
  expect(ended.status).toBe(404)
  const ofUser = async (token: string, name: string, method = 'GET') =>
    (await request(`/api/v1/users/${await idOf(name)}/sessions`, { token, method })).status
  expect(await ofUser(boss, 'ada')).toBe(404)
  expect(await ofUser(boss, 'ada', 'DELETE')).toBe(404)
  expect(await ofUser(tom, 'boss', 'DELETE')).toBe(403)
  expect(await ofUser(boss, 'tom')).toBe(200)
  expect(await ofUser(boss, 'tom', 'DELETE')).toBe(200)
  expect([await me(ada), await me(tom)]).toEqual([200, 401])
})

test('a user has at most 100 sessions: one more ends the oldest', async () => {
  const { access, sessions, me, now, tick } = await opened()
  const [ada] = await access.users.byUsername('ada')
  if (ada === undefined) throw new Error('there is no ada')
  const tokens: string[] = []
  for (let i = 0; i < 101; i += 1) {
    tick(1)
    tokens.push(await access.sessions.forUser(ada, now()))
  }
  const [oldest = '', second = ''] = tokens
  expect([await me(oldest), await me(second)]).toEqual([401, 200])
  expect(await sessions(second)).toHaveLength(100)
})

test('an application key has no sessions', async () => {
  const { key, request } = await opened()
  const answer = await request('/api/v1/auth/sessions', { token: await key() })
  expect([answer.status, answer.code]).toEqual([400, 'not_a_session'])
})
