import { Secret, TOTP } from 'otpauth'
import { expect, test } from 'vitest'
import { openControl, type TestControl } from '../../support/control.ts'
import { onSqlite } from '../../support/on-sqlite.ts'
import { readValue } from '../../support/stored.ts'

const minute = 60_000
const period = 30_000

interface Enrolled {
  readonly secret: string
  readonly otpauth_url: string
  readonly qr_svg: string
}

interface Challenge {
  readonly second_factor: string
  readonly challenge: string
}

const codeAt = (secret: string, now: number): string =>
  new TOTP({ secret: Secret.fromBase32(secret) }).generate({ timestamp: now })

async function opened() {
  const control = await openControl()
  await control.user('root', 'admin')
  await control.user('ada', 'operator')
  return { ...control, ...actionsOf(control) }
}

function actionsOf(control: TestControl) {
  let addresses = 0
  const login = (username: string, from?: string) =>
    control.request('/api/v1/auth/login', {
      body: { username, password: 'correct horse' },
      from: from ?? `198.51.${Math.floor((addresses += 1) / 200)}.${addresses % 200}`,
    })
  const tokenOf = async (username: string) =>
    (await login(username)).data<{ token: string }>().token
  const challengeOf = async (username: string) =>
    (await login(username)).data<Challenge>().challenge
  const byCode = async (code: string, challenge: string, from?: string) =>
    control.request('/api/v1/auth/login/code', {
      body: { challenge, code },
      from: from ?? `203.0.${Math.floor((addresses += 1) / 200)}.${addresses % 200}`,
    })
  const own = (path: string, token: string, body: object) =>
    control.request(`/api/v1/auth/second-factor${path}`, { token, body })
  /** Turns it on. Resolves with the secret, the recovery codes, and the token of the session. */
  const enrolled = async (username = 'ada') => {
    const token = await tokenOf(username)
    const { secret } = (await own('', token, { password: 'correct horse' })).data<Enrolled>()
    const code = codeAt(secret, control.now())
    const confirmed = await own('/confirmation', token, { code })
    expect(confirmed.status).toBe(200)
    return { secret, token, codes: confirmed.data<{ recovery_codes: string[] }>().recovery_codes }
  }
  return { login, tokenOf, challengeOf, byCode, own, enrolled }
}

test('after the password the code of the authenticator opens the session, and nothing before', async () => {
  const { enrolled, login, byCode, request, tick, now } = await opened()
  const { secret } = await enrolled()
  tick(period)
  const answer = await login('ada')
  expect(answer.body).toMatchObject({ data: { second_factor: 'code', expires_in: 300 } })
  expect(answer.text).not.toContain('token')
  const { challenge } = answer.data<Challenge>()
  expect((await request('/api/v1/auth/me', { token: challenge })).status).toBe(401)
  const session = await byCode(codeAt(secret, now()), challenge)
  expect(session.body).toMatchObject({ data: { user: { username: 'ada' }, recovery_codes: null } })
  const { token } = session.data<{ token: string }>()
  expect((await request('/api/v1/auth/me', { token })).body).toMatchObject({
    data: { username: 'ada', has_second_factor: true },
  })
})

test('enrolment shows the secret as URL and picture; it is on only after a right code', async () => {
  const { tokenOf, own, login, request } = await opened()
  const token = await tokenOf('ada')
  expect((await own('', token, { password: 'wrong' })).status).toBe(400)
  const begun = (await own('', token, { password: 'correct horse' })).data<Enrolled>()
  expect(begun.otpauth_url).toMatch(/^otpauth:\/\/totp\/Tollgate:ada\?.*secret=[A-Z2-7]{32}/)
  expect(begun.qr_svg).toMatch(/^<svg /)
  expect((await own('/confirmation', token, { code: '000000' })).status).toBe(400)
  expect((await login('ada')).data<{ token?: string }>().token).toBeDefined()
  expect((await request('/api/v1/auth/second-factor', { token })).body).toMatchObject({
    data: { is_on: false, recovery_codes_left: 0, is_required: false },
  })
})

test('a code one period early or late is accepted, two periods are not', async () => {
  const { enrolled, byCode, challengeOf, now, tick } = await opened()
  const { secret } = await enrolled()
  tick(10 * period)
  const attempt = async (offset: number) =>
    (await byCode(codeAt(secret, now() + offset), await challengeOf('ada'))).status
  expect(await attempt(-2 * period)).toBe(401)
  expect(await attempt(2 * period)).toBe(401)
  expect(await attempt(-period)).toBe(200)
  expect(await attempt(period)).toBe(200)
})

test('a code is used once, also by requests at the same time, and not after a later one', async () => {
  const { enrolled, byCode, challengeOf, now, tick } = await opened()
  const { secret } = await enrolled()
  const confirming = codeAt(secret, now())
  expect((await byCode(confirming, await challengeOf('ada'))).code).toBe('invalid_code')
  tick(period)
  const code = codeAt(secret, now())
  const challenges = await Promise.all([1, 2, 3, 4].map(() => challengeOf('ada')))
  const answers = await Promise.all(challenges.map((each) => byCode(code, each)))
  expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([
    200, 401, 401, 401,
  ])
  expect((await byCode(confirming, await challengeOf('ada'))).status).toBe(401)
})

test('each of the ten recovery codes opens one session; new ones replace all', async () => {
  const { enrolled, byCode, challengeOf, own, request, tick, now } = await opened()
  const { secret, codes, token } = await enrolled()
  expect(new Set(codes).size).toBe(10)
  const [first = '', second = ''] = codes
  expect((await byCode(first, await challengeOf('ada'))).status).toBe(200)
  expect((await byCode(first, await challengeOf('ada'))).status).toBe(401)
  const typed = second.replaceAll('-', ' ').toUpperCase()
  expect((await byCode(typed, await challengeOf('ada'))).status).toBe(200)
  const state = await request('/api/v1/auth/second-factor', { token })
  expect(state.body).toMatchObject({ data: { is_on: true, recovery_codes_left: 8 } })
  tick(period)
  const body = { password: 'correct horse', code: codeAt(secret, now()) }
  expect((await own('/recovery-codes', token, body)).status).toBe(200)
  expect((await byCode(codes[2] ?? '', await challengeOf('ada'))).status).toBe(401)
})

onSqlite('one process')(
  'five wrong codes from an address lock it for 15 minutes, twenty lock the user everywhere',
  async () => {
    const { enrolled, byCode, challengeOf, now, tick } = await opened()
    const { secret } = await enrolled()
    tick(period)
    const challenge = await challengeOf('ada')
    const wrong = codeAt(secret, now() - 100 * period)
    const guess = async (from: string, code = wrong) => (await byCode(code, challenge, from)).status
    for (let i = 0; i < 5; i += 1) expect(await guess('203.0.113.1')).toBe(401)
    expect(await guess('203.0.113.1', codeAt(secret, now()))).toBe(429)
    for (let i = 0; i < 15; i += 1) expect(await guess(`203.0.113.${10 + i}`)).toBe(401)
    expect(await guess('203.0.113.99', codeAt(secret, now()))).toBe(429)
    tick(15 * minute)
    const later = await challengeOf('ada')
    expect((await byCode(codeAt(secret, now()), later, '203.0.113.1')).status).toBe(200)
  },
)

test('a challenge is of one password, one way and five minutes', async () => {
  const { enrolled, byCode, challengeOf, request, now, tick } = await opened()
  const { secret } = await enrolled()
  tick(period)
  const challenge = await challengeOf('ada')
  const [text = '', signature = ''] = challenge.split('.')
  const forged = `${Buffer.from(`{"user":1}`).toString('base64url')}.${signature}`
  for (const each of [forged, `${text}.`, 'x', `${text}.${signature}x`])
    expect((await byCode(codeAt(secret, now()), each)).code).toBe('invalid_challenge')
  const asCookie = await request('/api/v1/auth/session/code', {
    body: { challenge, code: codeAt(secret, now()) },
    headers: { 'sec-fetch-site': 'same-origin' },
  })
  expect(asCookie.code).toBe('invalid_challenge')
  tick(5 * minute)
  expect((await byCode(codeAt(secret, now()), challenge)).code).toBe('invalid_challenge')
})

test('the console gets its cookie only with the code, and only on its own page', async () => {
  const { enrolled, request, now, tick } = await opened()
  const { secret } = await enrolled()
  tick(period)
  const ownPage = { 'sec-fetch-site': 'same-origin' }
  const asked = await request('/api/v1/auth/session', {
    body: { username: 'ada', password: 'correct horse' },
    headers: ownPage,
  })
  expect(asked.headers.get('set-cookie')).toBeNull()
  const body = { challenge: asked.data<Challenge>().challenge, code: codeAt(secret, now()) }
  const path = '/api/v1/auth/session/code'
  const foreign = { 'sec-fetch-site': 'cross-site' }
  expect((await request(path, { body, headers: foreign })).code).toBe('other_page')
  const answer = await request(path, { body, headers: ownPage })
  expect(answer.headers.get('set-cookie')).toMatch(/^tollgate_session=.*HttpOnly; SameSite=Strict/)
})

test('removal takes the password and a code; afterwards the password is enough', async () => {
  const { enrolled, own, login, now, tick } = await opened()
  const { secret, token } = await enrolled()
  tick(period)
  const code = codeAt(secret, now())
  const removal = (body: object) => own('/removal', token, body)
  expect((await removal({ password: 'wrong', code })).status).toBe(400)
  expect((await removal({ password: 'correct horse', code: '000000' })).status).toBe(400)
  expect((await removal({ password: 'correct horse', code })).status).toBe(200)
  expect((await login('ada')).text).toContain('"token"')
})

test('where it is required, a user sets it up before the first session, and cannot remove it', async () => {
  const { tokenOf, request, login, byCode, own, now, tick } = await opened()
  const root = await tokenOf('root')
  const required = { is_second_factor_required: true }
  const set = await request('/api/v1/sign-in-policy', {
    method: 'PUT',
    token: root,
    body: required,
  })
  expect(set.status).toBe(200)
  const asked = (await login('ada')).data<Challenge>()
  expect(asked.second_factor).toBe('enrolment')
  expect((await byCode('123456', asked.challenge)).code).toBe('invalid_code')
  const begun = await request('/api/v1/auth/login/enrolment', {
    body: { challenge: asked.challenge },
  })
  const { secret } = begun.data<Enrolled>()
  const session = await byCode(codeAt(secret, now()), asked.challenge)
  const { token, recovery_codes: codes } = session.data<{
    token: string
    recovery_codes: string[]
  }>()
  expect(codes).toHaveLength(10)
  // A challenge shows the secret of nobody who has one.
  const again = await request('/api/v1/auth/login/enrolment', {
    body: { challenge: asked.challenge },
  })
  expect(again.code).toBe('second_factor_on')
  tick(period)
  const body = { password: 'correct horse', code: codeAt(secret, now()) }
  expect((await own('/removal', token, body)).code).toBe('second_factor_required')
})

test('an administrator of a tenant asks it of its users alone, and resets theirs alone', async () => {
  const control = await opened()
  const { tokenOf, request, login, enrolled } = control
  const acme = await control.tenant('acme')
  await control.user('boss', 'admin', acme)
  await control.user('tom', 'operator', acme)
  const boss = await tokenOf('boss')
  const required = { is_second_factor_required: true }
  await request('/api/v1/sign-in-policy', { method: 'PUT', token: boss, body: required })
  expect((await login('tom')).data<Challenge>().second_factor).toBe('enrolment')
  expect((await login('root')).text).toContain('"token"')
  await enrolled('ada')
  const idOf = async (name: string) => (await control.access.users.byUsername(name))[0]?.id
  const reset = async (name: string, token: string) =>
    (
      await request(`/api/v1/users/${await idOf(name)}/second-factor`, {
        method: 'DELETE',
        token,
      })
    ).status
  expect(await reset('ada', boss)).toBe(404)
  const root = await tokenOf('root')
  expect(await reset('tom', root)).toBe(409)
  expect(await reset('ada', root)).toBe(200)
})

test('a reset ends the sessions of the user, and is in the audit log', async () => {
  const { enrolled, tokenOf, request, access, login } = await opened()
  const { token } = await enrolled()
  const root = await tokenOf('root')
  const id = (await access.users.byUsername('ada'))[0]?.id
  const path = `/api/v1/users/${id}/second-factor`
  const answer = await request(path, { method: 'DELETE', token: root })
  expect(answer.body).toMatchObject({ data: { username: 'ada', has_second_factor: false } })
  expect((await request('/api/v1/auth/me', { token })).status).toBe(401)
  expect((await login('ada')).text).toContain('"token"')
  const audit = await request('/api/v1/audit?action=DELETE', { token: root })
  expect(audit.body).toMatchObject({
    data: [{ actor: 'user:root', target: path, outcome: 'success' }],
  })
})

test('nothing but the first answer has the secret or a recovery code', async () => {
  const { enrolled, tokenOf, request, store, logged } = await opened()
  const { secret, codes } = await enrolled()
  const root = await tokenOf('root')
  const seen: string[] = [JSON.stringify(logged)]
  for (const path of ['/users', '/audit', '/changes', '/users/2', '/auth/second-factor'])
    seen.push((await request(`/api/v1${path}`, { token: root })).text)
  seen.push(String(await readValue(store, 'SELECT secret FROM user_second_factor')))
  const hash = await readValue(store, 'SELECT code_hash FROM user_recovery_code LIMIT 1')
  seen.push(Buffer.from(hash as Uint8Array).toString('utf8'))
  for (const text of seen)
    for (const hidden of [secret, ...codes]) expect(text).not.toContain(hidden)
})
