import { beforeEach, expect, test } from 'vitest'
import { openControl, type Answer, type TestControl } from '../../support/control.ts'

let control: TestControl
beforeEach(async () => {
  control = await openControl()
  await control.user('ada', 'auditor')
})

const OLD = 'correct horse'
const NEW = 'battery staple'
const page = { 'Sec-Fetch-Site': 'same-origin', Origin: 'http://localhost' }

const login = (password: string): Promise<Answer> =>
  control.request('/auth/login', { body: { username: 'ada', password } })
const tokenOf = (answer: Answer): string => answer.data<{ token: string }>().token

const change = (token: string, old_password: string, new_password: string = NEW): Promise<Answer> =>
  control.request('/auth/password', { method: 'PUT', token, body: { old_password, new_password } })

const statusOf = async (token: string): Promise<number> =>
  (await control.request('/auth/me', { token })).status

test('a user changes the own password; the other sessions end, and this one goes on', async () => {
  const [mine, other] = [tokenOf(await login(OLD)), tokenOf(await login(OLD))]
  const answer = await change(mine, OLD)
  expect([answer.status, answer.data()]).toEqual([
    200,
    {
      user: expect.objectContaining({ username: 'ada' }),
      token: expect.any(String),
      expires_in: 3_600,
    },
  ])
  expect(answer.text).not.toContain(NEW)
  expect([await statusOf(mine), await statusOf(other), await statusOf(tokenOf(answer))]).toEqual([
    401, 401, 200,
  ])
  expect([(await login(OLD)).status, (await login(NEW)).status]).toEqual([401, 200])
})

test('the session of the console goes on in its cookie, and the token is not told', async () => {
  const opened = await control.request('/auth/session', {
    headers: page,
    body: { username: 'ada', password: OLD },
  })
  const cookieOf = (answer: Answer) => answer.headers.get('set-cookie')?.split(';')[0] ?? ''
  const answer = await control.request('/auth/password', {
    method: 'PUT',
    headers: { ...page, Cookie: cookieOf(opened) },
    body: { old_password: OLD, new_password: NEW },
  })
  expect([answer.status, answer.data<{ token: null }>().token]).toEqual([200, null])
  const ask = async (from: Answer) =>
    (await control.request('/auth/me', { headers: { ...page, Cookie: cookieOf(from) } })).status
  expect([await ask(opened), await ask(answer)]).toEqual([401, 200])
  // A page of another site cannot do that.
  const foreign = await control.request('/auth/password', {
    method: 'PUT',
    headers: { 'Sec-Fetch-Site': 'cross-site', Cookie: cookieOf(answer) },
    body: { old_password: NEW, new_password: OLD },
  })
  expect(foreign.status).toBe(401)
})

test('a wrong old password names its field, and counts like a wrong login', async () => {
  const token = tokenOf(await login(OLD))
  for (let time = 0; time < 5; time += 1) {
    const wrong = await change(token, 'wrong horse')
    expect([wrong.status, wrong.body]).toEqual([
      400,
      expect.objectContaining({
        details: [{ path: 'old_password', message: 'is not the password of this user' }],
      }),
    ])
  }
  expect((await change(token, OLD)).code).toBe('login_locked')
  expect((await login(OLD)).code).toBe('login_locked')
  control.tick(16 * 60_000)
  expect((await change(token, OLD)).status).toBe(200)
})

test('of two changes with the same old password one wins', async () => {
  const token = tokenOf(await login(OLD))
  const answers = await Promise.all([
    change(token, OLD, 'first of two'),
    change(token, OLD, 'second of two'),
  ])
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
})

test('a new password is as long as that of any user, and a key has none', async () => {
  const token = tokenOf(await login(OLD))
  const short = await change(token, OLD, 'short')
  expect([short.status, short.text]).toEqual([400, expect.stringContaining('new_password')])
  expect((await change(await control.key(), OLD)).code).toBe('not_a_session')
  expect((await control.request('/auth/password', { method: 'PUT', body: {} })).status).toBe(401)
})
