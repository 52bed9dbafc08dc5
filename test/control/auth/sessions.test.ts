import fc from 'fast-check'
import { randomBytes, createHmac } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import type { UserPrincipal } from '../../../control/auth/principal.ts'
import {
  jwtSecret,
  Sessions,
  type Claims,
  signJwt,
  verifyJwt,
} from '../../../control/auth/sessions.ts'
import { UserStore } from '../../../control/auth/user-store.ts'
import type { Store } from '../../../schema/storage/store.ts'
import { hasPostgres } from '../../support/postgres.ts'
import { eachDatabase, sharedDatabase } from '../../support/shared-database.ts'

const halfAnHour = 1_900_000

function sessionsOf(store: Store) {
  const users = new UserStore(store)
  const readSecret = () => jwtSecret(store, undefined, randomBytes)
  return { users, sessions: new Sessions(store, users, readSecret, randomBytes) }
}

async function addAda(users: UserStore) {
  const user = await users.insert({
    username: 'ada',
    role: 'admin',
    password_hash: 'old',
    tenant_id: null,
    created_at: 0,
    updated_at: 0,
  })
  if (user === undefined) throw new Error('the name is taken')
  return user
}

async function principalOf(sessions: Sessions, token: string, now: number): Promise<UserPrincipal> {
  const presented = await sessions.verify(token, now)
  if (presented.kind !== 'accepted' || presented.principal.kind !== 'user')
    throw new Error('the session is not valid')
  return presented.principal
}

describe.each(eachDatabase)('sessions on $database', ({ open }) => {
  test('a password that changes while a session is renewed ends the renewed one, too', async () => {
    const { users, sessions } = sessionsOf(await open())
    const user = await addAda(users)
    const token = await sessions.renewableForUser(user, 0)
    const principal = await principalOf(sessions, token, halfAnHour)
    await addAnotherAdmin(users)
    await users.update(user.id, { password_hash: 'new' })
    const renewed = await sessions.renewed(principal, halfAnHour)
    expect(await sessions.verify(renewed ?? '', halfAnHour)).toEqual({ kind: 'rejected' })
  })

  test('a renewed session lasts when the password stays', async () => {
    const { users, sessions } = sessionsOf(await open())
    const token = await sessions.renewableForUser(await addAda(users), 0)
    const principal = await principalOf(sessions, token, halfAnHour)
    const renewed = await sessions.renewed(principal, halfAnHour)
    expect(await sessions.verify(renewed ?? '', 3_700_000)).toMatchObject({ kind: 'accepted' })
  })
})

describe.runIf(hasPostgres)('sessions of several instances', () => {
  test('instances that start at once make one signing secret: each takes the tokens of the others', async () => {
    const { open } = await sharedDatabase()
    const instances = [sessionsOf(await open()), sessionsOf(await open()), sessionsOf(await open())]
    await Promise.all(instances.map(({ sessions }) => sessions.prepare()))
    const [first] = instances
    if (first === undefined) throw new Error('no node')
    const token = await first.sessions.forUser(await addAda(first.users), 0)
    for (const { sessions } of instances)
      expect(await sessions.verify(token, 1_000)).toMatchObject({ kind: 'accepted' })
  })

  test('what ends a session on one instance ends it on the others from the next request on', async () => {
    const { open } = await sharedDatabase()
    const [here, there] = [sessionsOf(await open()), sessionsOf(await open())]
    const user = await addAda(here.users)
    await addAnotherAdmin(here.users)
    const tokens = await Promise.all([1, 2].map(() => here.sessions.forUser(user, 0)))
    const [ended = '', other = ''] = tokens
    await here.sessions.end(await principalOf(here.sessions, ended, 0), 0)
    expect(await there.sessions.verify(ended, 0)).toEqual({ kind: 'rejected' })
    expect(await principalOf(there.sessions, other, 0)).toMatchObject({ role: 'admin' })
    await here.users.update(user.id, { role: 'auditor' })
    expect(await principalOf(there.sessions, other, 0)).toMatchObject({ role: 'auditor' })
    await here.users.update(user.id, { is_active: 0 })
    expect(await there.sessions.verify(other, 0)).toEqual({ kind: 'rejected' })
  })
})

const addAnotherAdmin = (users: UserStore) =>
  users.insert({
    username: 'bob',
    role: 'admin',
    password_hash: '-',
    tenant_id: null,
    created_at: 0,
    updated_at: 0,
  })

const secret = 'a secret of this test'

const claims: Claims = {
  iss: 'tollgate',
  sub: '1',
  kind: 'user',
  jti: 'j',
  iat: 1_000,
  exp: 2_000,
  pwd: 'p',
}

const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')

/** Signs any header with any algorithm's hash, like an attacker without the secret. */
function forged(header: object, payload: object, key: string, algorithm = 'sha256'): string {
  const text = `${encode(header)}.${encode(payload)}`
  return `${text}.${createHmac(algorithm, key).update(text).digest('base64url')}`
}

test('a token is valid until its expiry, and not at it', () => {
  const token = signJwt(claims, secret)
  expect(verifyJwt(token, secret, 1_999_999)).toEqual(claims)
  expect(verifyJwt(token, secret, 2_000_000)).toBeUndefined()
})

test.each([
  ['alg none without signature', `${encode({ alg: 'none' })}.${encode(claims)}.`],
  ['alg none', forged({ alg: 'none', typ: 'JWT' }, claims, secret)],
  [
    'alg HS512 under the right secret',
    forged({ alg: 'HS512', typ: 'JWT' }, claims, secret, 'sha512'),
  ],
  ['a key of its own in the header', forged({ alg: 'HS256', typ: 'JWT', jwk: {} }, claims, secret)],
  ['another secret', forged({ alg: 'HS256', typ: 'JWT' }, claims, 'guess')],
  ['an empty secret', forged({ alg: 'HS256', typ: 'JWT' }, claims, '')],
  ['a missing claim', forged({ alg: 'HS256', typ: 'JWT' }, { ...claims, exp: undefined }, secret)],
  ['another issuer', forged({ alg: 'HS256', typ: 'JWT' }, { ...claims, iss: 'x' }, secret)],
])('a token with %s is refused', (_, token) => {
  expect(verifyJwt(token, secret, 1_000_000)).toBeUndefined()
})

test('a token of which any character was changed is refused', () => {
  const token = signJwt(claims, secret)
  const isLast = (at: number) => at === token.length - 1
  fc.assert(
    fc.property(fc.nat(token.length - 1), fc.constantFrom('A', 'z', '9', '.'), (at, character) => {
      // The last character holds four bits of the signature: another one may mean the same bytes.
      fc.pre(token[at] !== character && !isLast(at))
      const changed = token.slice(0, at) + character + token.slice(at + 1)
      expect(verifyJwt(changed, secret, 1_000_000)).toBeUndefined()
    }),
  )
})
