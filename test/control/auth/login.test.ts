import { expect, test } from 'vitest'
import { hashPassword } from '../../../control/auth/passwords.ts'
import { openControl, type TestControl } from '../../support/control.ts'
import { readValue, runSql } from '../../support/stored.ts'
import { onSqlite } from '../../support/on-sqlite.ts'

const LOGIN = '/api/v1/auth/login'
const minute = 60_000

async function opened() {
  const control = await openControl()
  await control.user('ada', 'operator')
  return { ...control, login: loginWith(control) }
}

/** Each attempt comes from an address of its own, unless the test says otherwise. */
function loginWith(control: TestControl) {
  let attempts = 0
  return (username: string, password = 'correct horse', from?: string) =>
    control.request(LOGIN, {
      body: { username, password },
      from: from ?? `198.51.100.${(attempts += 1)}`,
    })
}

interface Token {
  readonly token: string
}

test('a login answers a bearer token with which /auth/me shows the profile', async () => {
  const { login, request } = await opened()
  const answer = await login('ada')
  expect(answer.status).toBe(200)
  expect(answer.headers.get('cache-control')).toBe('no-store')
  expect(answer.body).toMatchObject({
    data: {
      token_type: 'Bearer',
      expires_in: 3_600,
      user: { username: 'ada', role: 'operator', is_active: true },
    },
  })
  const me = await request('/api/v1/auth/me', { token: answer.data<Token>().token })
  expect(me.body).toMatchObject({
    data: { kind: 'user', username: 'ada', scopes: ['*:read', 'dispatcher:*', 'calls:*'] },
  })
})

test('a wrong user and a wrong password are the same answer', async () => {
  const { login } = await opened()
  const strip = (body: unknown) => ({ ...(body as object), request_id: '' })
  const wrongUser = await login('unknown')
  const wrongPassword = await login('ada', 'wrong')
  expect(wrongUser.status).toBe(401)
  expect(strip(wrongUser.body)).toEqual(strip(wrongPassword.body))
})

test('a wrong user costs as much password work as a wrong password', async () => {
  const { login, access } = await opened()
  const checked: (string | null | undefined)[] = []
  const matches = access.passwords.matches.bind(access.passwords)
  access.passwords.matches = (password, hash, asker) => {
    checked.push(hash)
    return matches(password, hash, asker)
  }
  await access.passwords.prepare()
  for (let i = 0; i < 4; i += 1)
    for (const username of ['ada', `unknown${i}`]) await login(username, 'wrong')
  // Two each, so that a name which two tenants know takes no longer.
  expect(checked).toHaveLength(16)
})

onSqlite('one process')(
  'five failures lock the pair of user and address for 15 minutes, right password or not',
  async () => {
    const { login, tick } = await opened()
    const address = '203.0.113.1'
    for (let i = 0; i < 5; i += 1) expect((await login('ada', 'wrong', address)).status).toBe(401)
    const locked = await login('ada', 'correct horse', address)
    expect([locked.status, locked.code]).toEqual([429, 'login_locked'])
    expect(locked.headers.get('retry-after')).toBe('900')
    expect((await login('ada', 'correct horse', '203.0.113.2')).status).toBe(200)

    tick(15 * minute - 1)
    expect((await login('ada', 'correct horse', address)).status).toBe(429)
    tick(1)
    expect((await login('ada', 'correct horse', address)).status).toBe(200)
  },
)

test('a success forgets the failures before it', async () => {
  const { login } = await opened()
  const address = '203.0.113.1'
  for (let i = 0; i < 4; i += 1) await login('ada', 'wrong', address)
  await login('ada', 'correct horse', address)
  expect((await login('ada', 'wrong', address)).status).toBe(401)
})

onSqlite('one process')(
  'logins are limited to 10 per minute and address, with the headers that say so',
  async () => {
    const { login, tick } = await opened()
    const address = '203.0.113.9'
    for (let i = 0; i < 10; i += 1) {
      const { status, headers } = await login(`user${i}`, 'wrong', address)
      expect([status, headers.get('x-ratelimit-remaining')]).toEqual([401, `${9 - i}`])
    }
    const denied = await login('ada', 'correct horse', address)
    expect([denied.status, denied.code]).toEqual([429, 'rate_limited'])
    expect(denied.headers.get('x-ratelimit-limit')).toBe('10')
    tick(minute)
    expect((await login('ada', 'correct horse', address)).status).toBe(200)
  },
)

test('after a logout the session is over, and only that one', async () => {
  const { login, request } = await opened()
  const first = (await login('ada')).data<Token>().token
  const second = (await login('ada')).data<Token>().token
  const me = async (token: string) => (await request('/api/v1/auth/me', { token })).status
  expect((await request('/api/v1/auth/logout', { token: first, method: 'POST' })).status).toBe(200)
  expect([await me(first), await me(second)]).toEqual([401, 200])
})

test('ended sessions are forgotten once their tokens have expired', async () => {
  const { login, request, tick, store } = await opened()
  const logout = async () => {
    const { token } = (await login('ada')).data<Token>()
    await request('/api/v1/auth/logout', { token, method: 'POST' })
  }
  await logout()
  tick(3_600_000)
  await logout()
  expect(await readValue(store, 'SELECT count(*) FROM jwt_denylist')).toBe(1)
})

test('a switched off user, a changed password and a removed user end every session at once', async () => {
  const control = await opened()
  await control.user('root', 'admin')
  const root = (await control.login('root')).data<Token>().token
  const id = (await control.access.users.byUsername('ada'))[0]?.id
  const change = (method: string, body?: unknown) =>
    control.request(`/api/v1/users/${id}`, { token: root, method, body })
  const session = async (password?: string) =>
    (await control.login('ada', password)).data<Token>().token
  const me = async (token: string) => (await control.request('/api/v1/auth/me', { token })).status

  const first = await session()
  await change('PATCH', { is_active: false })
  expect(await me(first)).toBe(401)
  expect((await control.login('ada')).status).toBe(401)

  await change('PATCH', { is_active: true })
  const second = await session()
  await change('PATCH', { password: 'another horse' })
  expect(await me(second)).toBe(401)

  const third = await session('another horse')
  await change('DELETE')
  expect(await me(third)).toBe(401)
})

test('a changed role holds for sessions that are open', async () => {
  const { login, request, access } = await opened()
  const { token } = (await login('ada')).data<Token>()
  expect((await request('/api/v1/users', { token })).status).toBe(200)
  const [ada] = await access.users.byUsername('ada')
  await access.users.insert({
    username: 'root',
    role: 'admin',
    password_hash: 'x',
    created_at: 0,
    updated_at: 0,
  })
  await access.users.update(ada?.id ?? 0, { role: 'admin' })
  expect((await request('/api/v1/auth/me', { token })).body).toMatchObject({
    data: { scopes: ['*'] },
  })
})

test('a session may ask 600 times a minute', async () => {
  const { login, request } = await opened()
  const { token } = (await login('ada')).data<Token>()
  const answer = await request('/api/v1/auth/me', { token })
  expect(answer.headers.get('x-ratelimit-limit')).toBe('600')
})

test('an application key cannot log out', async () => {
  const { key, request } = await opened()
  const answer = await request('/api/v1/auth/logout', { token: await key(), method: 'POST' })
  expect([answer.status, answer.code]).toEqual([400, 'not_a_session'])
})

async function withCustomer() {
  const control = await openControl()
  const passwordHash = await hashPassword('correct horse')
  await runSql(
    control.store,
    `INSERT INTO customer (name, email, password_hash, created_at, updated_at)
       VALUES ('Acme', 'pay@acme.example', ?, 0, 0)`,
    passwordHash,
  )
  const login = (password: string, path = '/api/client/auth/login') =>
    control.request(path, {
      app: control.edge,
      body: { email: 'Pay@Acme.example', password },
    })
  return { ...control, login }
}

test('a customer logs in on the edge and reaches its own profile there', async () => {
  const { login, request, edge } = await withCustomer()
  const answer = await login('correct horse')
  expect(answer.body).toMatchObject({ data: { user: { name: 'Acme', role: 'customer' } } })
  const { token } = answer.data<Token>()
  const me = await request('/api/client/auth/me', { app: edge, token })
  expect(me.body).toMatchObject({ data: { email: 'pay@acme.example' } })
  expect((await request('/api/client/auth/me', { app: edge })).status).toBe(401)
  await request('/api/client/auth/logout', { app: edge, token, method: 'POST' })
  expect((await request('/api/client/auth/me', { app: edge, token })).status).toBe(401)
})

test('a machine reaches nothing of a customer', async () => {
  const { request, key } = await withCustomer()
  expect((await request('/api/client/auth/me', { token: await key() })).status).toBe(403)
})
