/** Ways past the second factor, and past what counts the guesses. */
import { Secret, TOTP } from 'otpauth'
import { expect, test } from 'vitest'
import { hashPassword } from '../../../control/auth/passwords.ts'
import { openControl } from '../../support/control.ts'
import { readValue, runSql } from '../../support/stored.ts'

const password = 'correct horse'
const period = 30_000

interface Challenge {
  readonly second_factor?: string
  readonly challenge: string
}

const codeAt = (secret: string, now: number): string =>
  new TOTP({ secret: Secret.fromBase32(secret) }).generate({ timestamp: now })

async function opened() {
  const control = await openControl()
  await control.user('root', 'admin')
  await control.user('ada', 'operator')
  let addresses = 0
  const from = (): string => `198.51.100.${(addresses += 1)}`
  const post = (path: string, body: object, token?: string) =>
    control.request(`/api/v1/auth/${path}`, {
      body,
      from: from(),
      ...(token !== undefined && { token }),
    })
  const login = (username: string) => post('login', { username, password })
  const tokenOf = async (username: string) =>
    (await login(username)).data<{ token: string }>().token
  const challengeOf = async (username: string) =>
    (await login(username)).data<Challenge>().challenge
  const byCode = (challenge: string, code: string) => post('login/code', { challenge, code })
  const enrolled = async (username: string) => {
    const token = await tokenOf(username)
    const { secret } = (await post('second-factor', { password }, token)).data<{ secret: string }>()
    const code = codeAt(secret, control.now())
    const confirmed = await post('second-factor/confirmation', { code }, token)
    expect(confirmed.status).toBe(200)
    control.tick(period)
    return { secret, token, codes: confirmed.data<{ recovery_codes: string[] }>().recovery_codes }
  }
  const require = async () => {
    const answer = await control.request('/api/v1/sign-in-policy', {
      token: await tokenOf('root'),
      method: 'PUT',
      body: { is_second_factor_required: true },
    })
    expect(answer.status).toBe(200)
  }
  return { ...control, post, login, tokenOf, challengeOf, byCode, enrolled, require }
}

test('a challenge of one user is none of another, and a changed one is none', async () => {
  const { enrolled, challengeOf, byCode, now } = await opened()
  const ada = await enrolled('ada')
  const root = await enrolled('root')
  const challenge = await challengeOf('ada')
  expect((await byCode(challenge, codeAt(root.secret, now()))).code).toBe('invalid_code')
  const [text = '', signature = ''] = challenge.split('.')
  const content = JSON.parse(Buffer.from(text, 'base64url').toString()) as Record<string, unknown>
  const changed = (change: object): string =>
    Buffer.from(JSON.stringify({ ...content, ...change })).toString('base64url')
  for (const forged of [
    `${changed({ user: 1 })}.${signature}`,
    `${changed({ expires: 9e15 })}.${signature}`,
    `${text}.`,
    `${text}.${signature}x`,
    text,
    '.',
    'null.null',
  ])
    expect([forged, (await byCode(forged, codeAt(ada.secret, now()))).status]).toEqual([
      forged,
      401,
    ])
})

test('one recovery code opens one session, of requests at the same time too', async () => {
  const { enrolled, challengeOf, byCode } = await opened()
  const { codes } = await enrolled('ada')
  const challenges = await Promise.all([1, 2, 3, 4].map(() => challengeOf('ada')))
  const answers = await Promise.all(challenges.map((each) => byCode(each, codes[0] ?? '')))
  expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([
    200, 401, 401, 401,
  ])
})

test('what is required is asked at each door, and a challenge opens none of them', async () => {
  const { require, login, request, post, byCode } = await opened()
  await require()
  const session = await request('/api/v1/auth/session', {
    body: { username: 'ada', password },
    headers: { 'sec-fetch-site': 'same-origin' },
  })
  expect(session.headers.get('set-cookie')).toBeNull()
  expect(session.data<Challenge>().second_factor).toBe('enrolment')
  const { challenge, second_factor: asked } = (await login('ada')).data<Challenge>()
  expect(asked).toBe('enrolment')
  const headers = { 'sec-fetch-site': 'same-origin', cookie: `tollgate_session=${challenge}` }
  for (const path of ['/api/v1/auth/me', '/api/v1/calls', '/api/v1/mcp/tools', '/mcp']) {
    expect((await request(path, { token: challenge })).status).not.toBe(200)
    expect((await request(path, { headers })).status).not.toBe(200)
  }
  for (const [path, body] of Object.entries({
    'second-factor': { password },
    'second-factor/confirmation': { code: '123456' },
    'second-factor/removal': { password, code: '123456' },
  }))
    expect((await post(path, body, challenge)).status).toBe(401)
  expect((await byCode(challenge, '123456')).status).toBe(401)
})

test('with the password alone nobody replaces a second factor that is on', async () => {
  const { require, enrolled, challengeOf, post, byCode, now, store } = await opened()
  const { secret } = await enrolled('ada')
  await require()
  const challenge = await challengeOf('ada')
  expect((await post('login/enrolment', { challenge })).status).toBe(409)
  expect((await byCode(challenge, codeAt(secret, now()))).status).toBe(200)
  expect(await readValue(store, 'SELECT count(*) FROM user_second_factor')).toBe(1)
})

test('an enrolment beside its confirmation leaves what was confirmed', async () => {
  const { tokenOf, post, now, store } = await opened()
  const token = await tokenOf('ada')
  const begin = () => post('second-factor', { password }, token)
  const { secret } = (await begin()).data<{ secret: string }>()
  const code = codeAt(secret, now())
  const [confirmed, ...others] = await Promise.all([
    post('second-factor/confirmation', { code }, token),
    begin(),
    begin(),
  ])
  const isOn = `SELECT count(*) FROM user_second_factor WHERE confirmed_at IS NOT NULL`
  expect(await readValue(store, isOn)).toBe(confirmed.status === 200 ? 1 : 0)
  for (const { status } of others) expect([200, 409]).toContain(status)
})

test('whoever is switched off between password and code gets no session', async () => {
  const { enrolled, challengeOf, byCode, now, store } = await opened()
  const { secret } = await enrolled('ada')
  const challenge = await challengeOf('ada')
  await runSql(store, `UPDATE "user" SET is_active = 0 WHERE username = 'ada'`)
  expect((await byCode(challenge, codeAt(secret, now()))).code).toBe('invalid_challenge')
})

test('a customer with the name of a user does not end the lock of the user', async () => {
  const { request, user, key, store } = await opened()
  const name = 'boss@corp.example'
  await user(name, 'admin')
  const token = await key()
  const made = await request('/api/v1/customers', { token, body: { name: 'Corp', email: name } })
  expect(made.status).toBe(201)
  const hash = await hashPassword('battery staple')
  await runSql(store, `UPDATE customer SET password_hash = '${hash}'`)
  const from = '203.0.113.9'
  const guess = async () =>
    (await request('/api/v1/auth/login', { body: { username: name, password: 'wrong' }, from }))
      .status
  for (let count = 0; count < 4; count += 1) expect(await guess()).toBe(401)
  const body = { email: name, password: 'battery staple' }
  expect((await request('/api/client/auth/login', { body, from })).status).toBe(200)
  expect([await guess(), await guess()]).toEqual([401, 429])
})
