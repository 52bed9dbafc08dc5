import { expect, test, vi } from 'vitest'
import { openAccess } from '../../../control/access.ts'
import { hashToken } from '../../../control/auth/app-key.ts'
import { KeyVerifier } from '../../../control/auth/verify-key.ts'
import { KeyStore } from '../../../control/auth/key-store.ts'
import { DatabaseUnavailable } from '../../../schema/sql/failure.ts'
import { FileChanges } from '../../../schema/changes/changes.ts'
import { deferred } from '../../support/deferred.ts'
import { openControl, startOfTime } from '../../support/control.ts'
import { ManualTime } from '../../support/manual-time.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { localOf, runSql } from '../../support/stored.ts'
import { onSqlite } from '../../support/on-sqlite.ts'

async function verifier() {
  const control = await openControl()
  const keys = new KeyStore(control.store, { onWrite: () => subject.clear() })
  const subject: KeyVerifier = new KeyVerifier(keys)
  const kindOf = async (token: string) =>
    (await subject.verify(token, '192.0.2.1', control.now())).kind
  return { control, subject, keys, kindOf }
}

const rowOf = (token: string) => ({
  uuid: '11111111-1111-4111-8111-111111111111',
  kind: 'sbc' as const,
  description: null,
  key_prefix: token.slice(0, 12),
  key_hash: Buffer.from(hashToken(token), 'base64'),
  scopes: '[]',
  rate_limit_rpm: 1,
  expires_at: null,
  suspended_at: null,
  suspended_by: null,
  revoked_at: null,
  last_used_at: null,
  tenant_id: null,
  domain: null,
  owner_username: null,
  created_at: startOfTime,
})

/** Another token with the same first 12 characters. */
const twinOf = (token: string) => `${token.slice(0, 12)}${'A'.repeat(token.length - 12)}`

test('of keys with the same 12 characters each token finds its own', async () => {
  const { control, keys, kindOf } = await verifier()
  const first = await control.key({ name: 'first' })
  const twin = twinOf(first)
  await keys.insert({ ...rowOf(twin), name: 'twin', is_active: 0 })
  expect(await keys.candidates(first.slice(0, 12))).toHaveLength(2)
  expect(await kindOf(first)).toBe('accepted')
  expect(await kindOf(twin)).toBe('rejected')
})

test('a token that was tried before it existed works from the moment it does', async () => {
  const { control, keys, subject, kindOf } = await verifier()
  const token = await control.key()
  await runSql(control.store, 'UPDATE application_key SET key_hash = ?', Buffer.alloc(32))
  expect(await kindOf(token)).toBe('rejected')
  expect(subject.cached.unknown).toBe(1)

  await keys.insert({ ...rowOf(token), name: 'late', is_active: 1 })
  expect(await kindOf(token)).toBe('accepted')
})

test('a known token is not read from the database again, an unknown one neither', async () => {
  const { control, kindOf } = await verifier()
  const token = await control.key()
  const unknown = twinOf(token)
  await kindOf(token)
  await kindOf(unknown)
  await runSql(control.store, 'DROP TABLE application_key_previous')
  await runSql(control.store, 'DELETE FROM application_key')
  expect(await kindOf(token)).toBe('accepted')
  expect(await kindOf(unknown)).toBe('rejected')
})

/** Holds the next look-up back once it has read the key. */
function heldBack(keys: KeyStore) {
  const read = keys.byId.bind(keys)
  const held = deferred()
  const hasRead = deferred()
  vi.spyOn(keys, 'byId').mockImplementationOnce(async (id) => {
    const key = await read(id)
    hasRead.resolve()
    await held.promise
    return key
  })
  return { hasRead: hasRead.promise, release: () => held.resolve() }
}

test.each(['revoked', 'rotated', 'switched off'])(
  'a key that is %s during a look-up is refused from then on',
  async (how) => {
    const { control, keys, kindOf } = await verifier()
    const token = await control.key()
    const { hasRead, release } = heldBack(keys)
    const before = kindOf(token)
    await hasRead
    const key = await keys.byId(1)
    if (key === undefined) throw new Error('the key is missing')
    if (how === 'revoked') await keys.revoke(key, control.now())
    else if (how === 'switched off') await keys.update(key, { is_active: false })
    else await keys.rotate(key, 'sbc_live_new', Buffer.alloc(32), control.now(), control.now())
    expect(await kindOf(token)).toBe('rejected')
    release()
    expect(await before).toBe('accepted')
    expect(await kindOf(token)).toBe('rejected')
  },
)

test('a flood of wrong tokens takes bounded memory', async () => {
  const { subject, kindOf } = await verifier()
  for (let i = 0; i < 11_000; i += 1) await kindOf(`sbc_live_${i}`)
  expect(subject.cached.unknown).toBe(10_000)
})

const folder = temporaryFolder()

onSqlite('file')('a change by another process holds within a second', async () => {
  const control = await openControl({ path: `${folder}/keys.db` })
  const token = await control.key()
  const time = new ManualTime(0)
  const changes = new FileChanges(localOf(control.store), {
    schedule: time.schedule,
    log: () => undefined,
  })
  await changes.start()
  const { verifier: keys } = openAccess({ ...control.deps, changes })
  const verdict = async () => (await keys.verify(token, '127.0.0.1', startOfTime)).kind
  expect(await verdict()).toBe('accepted')
  const other = await openControl({ path: `${folder}/keys.db` })
  await runSql(other.store, 'UPDATE application_key SET revoked_at = 1')
  await other.close()
  expect(await verdict()).toBe('accepted')
  time.advance(1_000)
  expect(await verdict()).toBe('rejected')
  await control.close()
})

test('a token is accepted from memory for ten minutes after the database was heard last, and then asked of it', async () => {
  const { control, keys } = await verifier()
  let unconfirmedMs = 0
  const subject = new KeyVerifier(keys, () => unconfirmedMs)
  const token = await control.key()
  const read = vi.spyOn(keys, 'candidates')
  const verify = async () => (await subject.verify(token, '192.0.2.1', control.now())).kind
  expect(await verify()).toBe('accepted')
  read.mockRejectedValue(new DatabaseUnavailable('it does not answer'))
  unconfirmedMs = 599_999
  expect(await verify()).toBe('accepted')
  unconfirmedMs = 600_000
  await expect(verify()).rejects.toThrow('it does not answer')
  expect(read).toHaveBeenCalledTimes(2)
  unconfirmedMs = 0
  expect(await verify()).toBe('accepted')
})

test('a node that has not heard of the database for ten minutes answers requests with a key with 503', async () => {
  const control = await openControl()
  const token = await control.key()
  expect((await control.request('/api/v1/health', { token })).status).toBe(200)
  Object.defineProperty(control.deps.nodes, 'heartbeatAgeMs', { value: 600_000 })
  vi.spyOn(control.access.keys, 'candidates').mockRejectedValue(new DatabaseUnavailable('no'))
  const answer = await control.request('/api/v1/health', { token })
  expect([answer.status, answer.code]).toEqual([503, 'storage_unavailable'])
  expect((await control.request('/livez')).status).toBe(200)
})
