import { beforeEach, expect, test } from 'vitest'
import {
  openControl,
  type Answer,
  type RequestOptions,
  type TestControl,
} from '../../support/control.ts'

let control: TestControl
beforeEach(async () => {
  control = await openControl()
  await control.user('ada', 'admin')
  await control.user('otto', 'operator')
})

const page = { 'Sec-Fetch-Site': 'same-origin', Origin: 'http://localhost' }
const signIn = (options: RequestOptions = {}, username = 'ada'): Promise<Answer> =>
  control.request('/auth/session', {
    headers: page,
    body: { username, password: 'correct horse' },
    ...options,
  })

/** `name=value` as a browser sends it back. */
const cookieOf = (answer: Answer): string => answer.headers.get('set-cookie')?.split(';')[0] ?? ''

const ask = (path: string, cookie: string, options: RequestOptions = {}): Promise<Answer> =>
  control.request(path, { ...options, headers: { ...page, Cookie: cookie, ...options.headers } })

test('signing in sets a cookie that scripts cannot read and other sites do not send', async () => {
  const answer = await signIn()
  expect(answer.status).toBe(200)
  const [, ...attributes] = (answer.headers.get('set-cookie') ?? '').split('; ')
  expect(attributes.toSorted()).toEqual(['HttpOnly', 'Max-Age=3600', 'Path=/', 'SameSite=Strict'])
  expect(answer.text).not.toContain(cookieOf(answer).split('=')[1])
  const profile = await ask('/auth/me', cookieOf(answer))
  expect(profile.data()).toMatchObject({ kind: 'user', username: 'ada', role: 'admin' })
})

test('on an encrypted page the cookie is Secure and bound to its host', async () => {
  const answer = await signIn({ headers: { ...page, Origin: 'https://tollgate.example' } })
  const cookie = answer.headers.get('set-cookie') ?? ''
  expect(cookie).toMatch(/^__Host-tollgate_session=/)
  expect(cookie.split('; ')).toContain('Secure')
  expect((await ask('/auth/me', cookieOf(answer))).status).toBe(200)
})

test.each([
  ['another site', { 'Sec-Fetch-Site': 'cross-site', Origin: 'https://evil.example' }],
  ['another port of this host', { 'Sec-Fetch-Site': 'same-site', Origin: 'http://localhost:81' }],
  ['an old browser on another page', { Origin: 'http://evil.example' }],
  ['a page without an origin', { Origin: 'null' }],
])(
  'a request of %s has no session, and cannot open one',
  async (_, headers: Record<string, string>) => {
    const cookie = cookieOf(await signIn())
    const foreign = { headers: { ...headers, Cookie: cookie } }
    expect((await control.request('/auth/me', foreign)).status).toBe(401)
    const drain = { ...foreign, body: { name: 'stolen', scopes: ['*'] } }
    expect((await control.request('/application-keys', drain)).status).toBe(401)
    expect((await signIn({ headers })).code).toBe('other_page')
  },
)

test('without Sec-Fetch-Site, a change needs the own origin; an address typed by the user may read', async () => {
  const cookie = cookieOf(await signIn())
  const make = (headers: Record<string, string>) =>
    control.request('/application-keys', {
      headers: { Cookie: cookie, ...headers },
      body: { name: 'new', scopes: ['cdrs:read'] },
    })
  expect((await make({})).status).toBe(401)
  expect((await make({ Origin: 'http://localhost', Host: 'localhost' })).status).toBe(201)
  const typed = { headers: { Cookie: cookie, 'Sec-Fetch-Site': 'none' } }
  expect((await control.request('/auth/me', typed)).status).toBe(200)
})

test('signing out ends the session at the server', async () => {
  const cookie = cookieOf(await signIn())
  const answer = await ask('/auth/session', cookie, { method: 'DELETE' })
  expect([answer.status, answer.headers.get('set-cookie')]).toEqual([
    200,
    expect.stringContaining('Max-Age=0'),
  ])
  expect((await ask('/auth/me', cookie)).status).toBe(401)
})

test('without a session, the page is told so without an error', async () => {
  const none = await control.request('/auth/session', { headers: page })
  expect(none.data()).toEqual({ profile: null })
  const found = await ask('/auth/session', cookieOf(await signIn()))
  expect(found.data()).toMatchObject({ profile: { kind: 'user', username: 'ada' } })
})

/** Asks as the page does while it is in use; returns the cookie that it has from then on. */
const askedAgain = async (cookie: string): Promise<string> => {
  const answer = await ask('/auth/session', cookie, { method: 'GET' })
  return cookieOf(answer) === '' ? cookie : cookieOf(answer)
}

test('a session in use is renewed, and ends twelve hours after the password was given', async () => {
  let cookie = cookieOf(await signIn())
  control.tick(1_700_000)
  expect(await askedAgain(cookie)).toBe(cookie)
  for (let minute = 30; minute < 12 * 60; minute += 10) {
    cookie = await askedAgain(cookie)
    expect([minute, (await ask('/auth/me', cookie)).status]).toEqual([minute, 200])
    control.tick(600_000)
  }
  cookie = await askedAgain(cookie)
  control.tick(120_000)
  expect((await ask('/auth/me', await askedAgain(cookie))).status).toBe(401)
})

test('the end of a session ends what it was renewed from and to', async () => {
  const first = cookieOf(await signIn())
  control.tick(1_900_000)
  const second = await askedAgain(first)
  expect(second).not.toBe(first)
  control.tick(1_000)
  await ask('/auth/session', first, { method: 'DELETE' })
  expect((await ask('/auth/me', second)).status).toBe(401)
  control.tick(1_800_000)
  await ask('/auth/session', cookieOf(await signIn()), { method: 'DELETE' })
  expect((await ask('/auth/me', second)).status).toBe(401)
})

test('a token in a header is not renewed, and a renewed cookie stays bound to its host', async () => {
  const answer = await signIn({ headers: { ...page, Origin: 'https://tollgate.example' } })
  const cookie = cookieOf(answer)
  control.tick(1_900_000)
  const token = cookie.split('=')[1] ?? ''
  const byHeader = await control.request('/auth/session', { token })
  expect([byHeader.status, byHeader.headers.get('set-cookie')]).toEqual([200, null])
  // A browser sends no Origin with a GET of its own page.
  const headers = { 'Sec-Fetch-Site': 'same-origin', Cookie: cookie }
  const renewed = await control.request('/auth/session', { headers })
  expect(renewed.headers.get('set-cookie')).toMatch(/^__Host-tollgate_session=.*; Secure/)
})

test('a key or token in a header is not changed by a cookie', async () => {
  const cookie = cookieOf(await signIn())
  const token = await control.key({ scopes: ['cdrs:read'] })
  expect((await ask('/dispatcher', cookie, { token })).code).toBe('insufficient_scope')
  const header = await ask('/dispatcher', cookie, { headers: { 'X-API-Key': token } })
  expect(header.code).toBe('insufficient_scope')
  expect((await ask('/auth/me', cookie, { headers: { Authorization: 'Bearer x' } })).status).toBe(
    401,
  )
})

test('a key is no session: it counts in no cookie', async () => {
  expect((await ask('/auth/me', `tollgate_session=${await control.key()}`)).status).toBe(401)
})

test('signing in is limited as logging in is, and audited', async () => {
  const wrong = { headers: page, body: { username: 'ada', password: 'wrong' } }
  const statuses: number[] = []
  for (let count = 0; count < 6; count += 1) statuses.push((await signIn(wrong)).status)
  expect(statuses).toEqual([401, 401, 401, 401, 401, 429])
  const answers = await Promise.all(Array.from({ length: 6 }, () => signIn({}, 'otto')))
  expect(answers.map(({ status }) => status).filter((status) => status === 429)).toHaveLength(2)
  const audit = await control.request('/audit', { token: await control.key() })
  expect(audit.data<{ actor: string; action: string }[]>()).toContainEqual(
    expect.objectContaining({ actor: 'user:otto', action: 'POST /api/v1/auth/session' }),
  )
})

test('the event stream of a session ends with it', async () => {
  const cookie = cookieOf(await signIn())
  const stream = await control.app.request('/api/v1/events', {
    headers: { ...page, Cookie: cookie, Accept: 'text/event-stream' },
  })
  expect(stream.status).toBe(200)
  await ask('/auth/session', cookie, { method: 'DELETE' })
  control.tick(2_000)
  control.hub.flush()
  expect(await stream.text()).toContain('welcome')
})
