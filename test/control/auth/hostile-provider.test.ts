/** Identity providers that lie, and people between them and this program. */
import { generateKeyPairSync, sign } from 'node:crypto'
import { expect, test } from 'vitest'
import { providerFetch } from '../../../control/auth/single-sign-on/provider-fetch.ts'
import type { Schedule } from '../../../schema/clock.ts'
import type { Resolve } from '../../../schema/net/http-target.ts'
import { openControl } from '../../support/control.ts'
import {
  hostileClient,
  type Hostility,
  openHostileProvider,
  withClientSecret,
  withPublicKeyAsSecret,
} from '../../support/hostile-provider.ts'
import { readColumn, readValue, runSql } from '../../support/stored.ts'

const publicUrl = 'https://tollgate.example'
const unavailable = '/console?sign_in=provider_unavailable'
const expired = '/console?sign_in=expired'

async function opened({ tenantSlug = '' } = {}) {
  const control = await openControl({ publicUrl, allowsPrivateTargets: true })
  await control.user('root', 'admin')
  await control.tenant('acme')
  const token = await control.key()
  const provider = await openHostileProvider(Date.now)
  const add = async (name: string, change: object = {}, slug = tenantSlug) => {
    const made = await control.request('/api/v1/identity-providers', {
      token,
      headers: slug === '' ? {} : { 'X-Tenant-Slug': slug },
      body: {
        name,
        issuer: provider.issuer,
        ...hostileClient,
        role_mappings: [{ value: 'voice', role: 'operator' }],
        ...change,
      },
    })
    expect([made.status, made.text]).toEqual([201, made.text])
    return made.data<{ id: number; redirect_uri: string }>()
  }
  const start = async (id = 1) => {
    const answer = await control.request(`/api/v1/auth/providers/${id}/start`)
    const cookie = answer.headers.get('set-cookie')?.split(';', 1)[0] ?? ''
    return { cookie, url: answer.headers.get('location') ?? '' }
  }
  const finish = async ({ pathname, search }: URL, cookie: string) => {
    const answer = await control.request(`${pathname}${search}`, { headers: { cookie } })
    const session = /__Host-tollgate_session=([^;]+)/.exec(answer.headers.get('set-cookie') ?? '')
    return { to: answer.headers.get('location'), token: session?.[1] ?? '' }
  }
  const signIn = async (id = 1) => {
    const { cookie, url } = await start(id)
    return url.startsWith('/') ? { to: url, token: '' } : finish(provider.agree(url), cookie)
  }
  const me = async (session: string) =>
    (await control.request('/api/v1/auth/me', { token: session })).status
  return { ...control, token, provider, add, start, finish, signIn, me }
}

const foreignKey = generateKeyPairSync('rsa', { modulusLength: 2_048 }).privateKey
const soon = () => Math.floor(Date.now() / 1_000)

const lies: Record<string, () => Hostility> = {
  'no signature': () => ({ header: { alg: 'none' }, signature: () => '' }),
  'no signature, which it declares': () => ({
    header: { alg: 'none' },
    signature: () => '',
    discovery: { id_token_signing_alg_values_supported: ['none', 'RS256'] },
  }),
  'the public key as the secret of an HMAC': () => ({
    header: { alg: 'HS256' },
    signature: withPublicKeyAsSecret,
    discovery: { id_token_signing_alg_values_supported: ['HS256', 'RS256'] },
  }),
  'an HMAC by the secret of the client': () => ({
    header: { alg: 'HS256' },
    signature: withClientSecret,
    discovery: { id_token_signing_alg_values_supported: ['HS256', 'RS256'] },
  }),
  'a signature of another key': () => ({
    signature: (signed) => sign('sha256', Buffer.from(signed), foreignKey).toString('base64url'),
  }),
  'a key that it does not know': () => ({ header: { kid: 'other' } }),
  'another algorithm than it declares': () => ({ header: { alg: 'RS512' } }),
  'an unknown critical header': () => ({ header: { crit: ['x'], x: 1 } }),
  'an expired token': () => ({ claims: { iat: soon() - 600, exp: soon() - 300 } }),
  'a token that is valid later': () => ({ claims: { nbf: soon() + 600 } }),
  'a token without an end': () => ({ claims: { exp: undefined } }),
  'a token of another issuer': () => ({ claims: { iss: 'https://other.example' } }),
  'a token for another client': () => ({ claims: { aud: 'other' } }),
  'a token for several clients, asked for by another': () => ({
    claims: { aud: [hostileClient.client_id, 'other'], azp: 'other' },
  }),
  'a token of another sign-in': () => ({ claims: { nonce: 'other' } }),
  'a token without a nonce': () => ({ claims: { nonce: undefined } }),
  'a token without a subject': () => ({ claims: { sub: undefined } }),
  'an empty subject': () => ({ claims: { sub: '' }, userinfo: { sub: '' } }),
  'a subject that is no text': () => ({ claims: { sub: 1 }, userinfo: { sub: 1 } }),
  'a subject that is too long': () => {
    const sub = 's'.repeat(256)
    return { claims: { sub }, userinfo: { sub } }
  },
  'the description of another person': () => ({ userinfo: { sub: 'sub-2' } }),
  'another name for itself': () => ({ discovery: { issuer: 'https://other.example' } }),
  'keys that are a redirect': () => ({
    answers: { '/jwks': (to) => void to.writeHead(302, { location: '/other' }).end() },
  }),
  'no answer with keys': () => ({ answers: { '/jwks': (to) => to.destroy() } }),
  'a description of itself that is too long': () => ({
    answers: {
      '/.well-known/openid-configuration': (to) => {
        to.writeHead(200, { 'content-type': 'application/json' })
        to.end(`{"issuer": "${'x'.repeat(600_000)}"}`)
      },
    },
  }),
  'groups without an end': () => ({ claims: { groups: Array(60_000).fill('some group') } }),
}

test('who is vouched for as it should be signs in', async () => {
  const { add, signIn, me } = await opened()
  await add('Company')
  const { to, token } = await signIn()
  expect([to, await me(token)]).toEqual(['/console', 200])
})

test.each(Object.keys(lies))('%s opens no session and makes no user', async (name) => {
  const { add, signIn, provider, store } = await opened()
  await add('Company')
  Object.assign(provider.hostility, lies[name]?.())
  expect(await signIn()).toEqual({ to: unavailable, token: '' })
  expect(await readValue(store, 'SELECT count(*) FROM user_identity')).toBe(0)
  expect(await readValue(store, 'SELECT count(*) FROM "user"')).toBe(1)
})

test('of very many groups the first thousand count', async () => {
  const { add, signIn, provider } = await opened()
  await add('Company')
  const others = Array.from({ length: 999 }, (_, index) => `g${index}`)
  provider.hostility.claims = { groups: [...others, 'more', 'voice'] }
  expect((await signIn()).to).toBe('/console?sign_in=no_role')
  provider.hostility.claims = { groups: [...others, 'voice'] }
  expect((await signIn()).to).toBe('/console')
})

test('names that no user may have are made ones that it may', async () => {
  const { add, signIn, provider, store } = await opened()
  await add('Company')
  for (const [sub, name] of Object.entries({
    a: `<img src=x onerror=alert(1)>`,
    b: 'x'.repeat(5_000),
    c: 'user:root/../\u0000\n',
    d: 'ＲＯＯＴ',
  })) {
    provider.hostility.claims = { sub, preferred_username: name }
    provider.hostility.userinfo = { sub }
    expect([name, (await signIn()).to]).toEqual([name, '/console'])
  }
  const names = await readColumn<string>(store, 'SELECT username FROM "user"')
  expect(names.filter((name) => !/^[a-z0-9._@+-]{1,64}$/.test(name))).toEqual([])
})

const mixedAddresses: Resolve = async () => [
  { address: '203.0.113.1', family: 4 },
  { address: '10.0.0.1', family: 4 },
]

test.each([
  'https://127.0.0.1/jwks',
  'https://2130706433/jwks',
  'https://0x7f.1/jwks',
  'https://[::1]/jwks',
  'https://[::ffff:10.0.0.1]/jwks',
  'https://169.254.169.254/latest/meta-data',
  'https://0.0.0.0/jwks',
  'https://login.example/jwks',
  'http://login.example/jwks',
  'file:///etc/passwd',
])('%s is not asked for, whoever names it', async (address) => {
  const rules = { resolve: mixedAddresses, allowPrivate: false, schedule: after(5_000) }
  const asked = providerFetch(rules)(address, { ...getting })
  await expect(asked).rejects.toThrow(/private address|single host|not https/)
})

test.each(['/never', '/slowly'])('an answer that comes %s ends after its time', async (path) => {
  const provider = await openHostileProvider(Date.now)
  provider.hostility.answers = {
    '/never': () => undefined,
    '/slowly': (to) => {
      to.writeHead(200, { 'content-type': 'application/json' })
      const timer = setInterval(() => to.write(' '), 10)
      to.on('close', () => clearInterval(timer))
    },
  }
  const times: number[] = []
  const rules = { resolve: mixedAddresses, allowPrivate: true, schedule: after(50, times) }
  const asked = providerFetch(rules)(`${provider.issuer}${path}`, { ...getting })
  await expect(asked).rejects.toThrow('no answer within 5000 ms')
  expect(times).toEqual([5_000])
})

const getting = { method: 'GET', headers: {}, body: undefined, redirect: 'manual' as const }

/** A schedule whose times are all this long. */
const after =
  (ms: number, asked: number[] = []): Schedule =>
  (work, wanted) => {
    asked.push(wanted)
    const timer = setTimeout(work, ms)
    return () => clearTimeout(timer)
  }

test('a code that comes back for another provider is not taken, whoever has begun', async () => {
  const { add, start, finish, provider, store } = await opened()
  const mallory = await openHostileProvider(Date.now)
  const honest = await add('Company')
  const own = await add('Mallory', { issuer: mallory.issuer }, 'acme')
  expect(honest.redirect_uri).not.toBe(own.redirect_uri)
  // The attacker's own attempt at the honest provider, whose challenge the visitor gets.
  const attacker = await start(honest.id)
  const visitor = await start(own.id)
  const swapped = new URL(attacker.url)
  swapped.searchParams.set('state', new URL(visitor.url).searchParams.get('state') ?? '')
  const back = provider.agree(swapped.href)
  expect((await finish(back, visitor.cookie)).to).toBe(expired)
  expect(mallory.asked).not.toContain('/token')
  expect(provider.asked).not.toContain('/token')
  expect(await readValue(store, 'SELECT count(*) FROM user_identity')).toBe(0)
})

test('another issuer in the answer is refused', async () => {
  const { add, start, finish, provider } = await opened()
  await add('Company')
  const { cookie, url } = await start()
  const back = provider.agree(url)
  back.searchParams.set('iss', 'https://other.example')
  expect((await finish(back, cookie)).to).toBe(unavailable)
  expect(provider.asked).not.toContain('/token')
})

test('nothing in an answer says where the browser goes', async () => {
  const { add, start, finish, provider } = await opened()
  await add('Company')
  for (const name of ['redirect', 'next', 'return_to', 'redirect_uri', 'error_uri']) {
    const { cookie, url } = await start()
    const back = provider.agree(url)
    back.searchParams.set(name, 'https://evil.example')
    expect((await finish(back, cookie)).to).toBe('/console')
  }
})

test('an error of the provider shows nothing of itself', async () => {
  const { add, start, finish, provider } = await opened()
  await add('Company')
  const { cookie, url } = await start()
  const back = provider.agree(url)
  back.searchParams.delete('code')
  back.searchParams.set('error', '"><script>')
  expect((await finish(back, cookie)).to).toBe('/console?sign_in=provider_refused')
})

test('who signs in as what is said anew: the sessions end, and others do not', async () => {
  const { add, signIn, me, request, token } = await opened()
  await add('Company')
  await add('Other')
  const patch = (body: object) =>
    request('/api/v1/identity-providers/1', { token, method: 'PATCH', body })
  const kept = await signIn(2)
  const first = await signIn()
  expect((await patch({ name: 'Renamed', client_secret: 'another' })).status).toBe(200)
  expect(await me(first.token)).toBe(200)
  await patch({ client_secret: hostileClient.client_secret })
  for (const change of [
    { role_mappings: [{ value: 'voice', role: 'auditor' }] },
    { role_claim: 'roles' },
    { role_claim: 'groups', client_id: 'tollgate' },
  ]) {
    expect((await patch(change)).status).toBe(200)
    expect(await me(first.token)).toBe(401)
  }
  const second = await signIn()
  expect([await me(second.token), await me(kept.token)]).toEqual([200, 200])
  await patch({ issuer: 'http://127.0.0.1:9', client_secret: 'x' })
  expect([await me(second.token), await me(kept.token)]).toEqual([401, 200])
})

test('whose tenant is not there any more is refused, and the open sessions end', async () => {
  const { add, signIn, me, store } = await opened()
  await add('Company', { role_mappings: [{ value: 'voice', role: 'operator', tenant: 'acme' }] })
  const { token } = await signIn()
  expect(await me(token)).toBe(200)
  await runSql(store, `UPDATE tenant SET is_active = 0`)
  expect((await signIn()).to).toBe('/console?sign_in=unknown_tenant')
  await runSql(store, `UPDATE tenant SET is_active = 1`)
  expect(await me(token)).toBe(401)
})

test('the provider of a tenant that is switched off is not there', async () => {
  const { add, start, finish, provider, store, request } = await opened({ tenantSlug: 'acme' })
  await add('Company')
  const { cookie, url } = await start()
  await runSql(store, `UPDATE tenant SET is_active = 0`)
  expect((await request('/api/v1/auth/providers/1/start')).status).toBe(404)
  expect((await finish(provider.agree(url), cookie)).to).toBe(expired)
})

test('two first sign-ins of a person at once make one user', async () => {
  const { add, signIn, store } = await opened()
  await add('Company')
  const outcomes = await Promise.all([signIn(), signIn(), signIn()])
  expect(outcomes.map(({ to }) => to)).toEqual(Array(3).fill('/console'))
  expect(await readValue(store, 'SELECT count(*) FROM user_identity')).toBe(1)
})

test('an issuer for all directories of Entra ID is refused: any of them would give roles', async () => {
  const { request, token } = await opened()
  for (const directory of ['common', 'organizations', 'consumers', 'Common']) {
    const answer = await request('/api/v1/identity-providers', {
      token,
      body: {
        name: directory,
        issuer: `https://login.microsoftonline.com/${directory}/v2.0`,
        client_id: 'x',
        role_mappings: [{ value: 'voice', role: 'operator' }],
      },
    })
    expect(answer.body).toMatchObject({ details: [{ path: 'issuer' }] })
  }
})
