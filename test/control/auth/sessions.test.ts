import { randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import type { UserPrincipal } from '../../../control/auth/principal.ts'
import { jwtSecret, Sessions } from '../../../control/auth/sessions.ts'
import { UserStore } from '../../../control/auth/user-store.ts'
import type { Store } from '../../../schema/open.ts'
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

describe.runIf(hasPostgres)('sessions of several nodes', () => {
  test('nodes that start at once make one signing secret: each takes the tokens of the others', async () => {
    const { open } = await sharedDatabase()
    const nodes = [sessionsOf(await open()), sessionsOf(await open()), sessionsOf(await open())]
    await Promise.all(nodes.map(({ sessions }) => sessions.prepare()))
    const [first] = nodes
    if (first === undefined) throw new Error('no node')
    const token = await first.sessions.forUser(await addAda(first.users), 0)
    for (const { sessions } of nodes)
      expect(await sessions.verify(token, 1_000)).toMatchObject({ kind: 'accepted' })
  })

  test('what ends a session on one node ends it on the others from the next request on', async () => {
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
