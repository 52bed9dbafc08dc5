import { expect, test, vi } from 'vitest'
import { openAccess } from '../../../control/access.ts'
import { hashToken } from '../../../control/auth/app-key.ts'
import { KeyVerifier } from '../../../control/auth/verify-key.ts'
import { KeyStore } from '../../../control/auth/key-store.ts'
import { DatabaseUnavailable } from '../../../schema/sql/failure.ts'
import { FileChanges } from '../../../schema/changes/file-changes.ts'
import { deferred } from '../../support/deferred.ts'
import { openControl, startOfTime } from '../../support/control.ts'
import { ManualTime } from '../../support/manual-time.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { localOf, runSql, readRow, readValue } from '../../support/stored.ts'
import { onSqlite } from '../../support/on-sqlite.ts'
import { readCredential } from '../../../control/auth/authenticate.ts'
import { KeyUsage } from '../../../control/auth/key-usage.ts'

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
    every: time.every,
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

test('an instance that has not heard of the database for ten minutes answers requests with a key with 503', async () => {
  const control = await openControl()
  const token = await control.key()
  expect((await control.request('/api/v1/health', { token })).status).toBe(200)
  Object.defineProperty(control.deps.instances, 'heartbeatAgeMs', { value: 600_000 })
  vi.spyOn(control.access.keys, 'candidates').mockRejectedValue(new DatabaseUnavailable('no'))
  const answer = await control.request('/api/v1/health', { token })
  expect([answer.status, answer.code]).toEqual([503, 'storage_unavailable'])
  expect((await control.request('/livez')).status).toBe(200)
})

const token = `sbc_live_${'x'.repeat(64)}`

test.each([
  [`Bearer ${token}`, undefined, { kind: 'key', token }],
  [`bearer ${token}`, undefined, { kind: 'key', token }],
  [undefined, token, { kind: 'key', token }],
  [`Bearer ${token}`, 'other', { kind: 'key', token }],
  ['Bearer a.b.c', undefined, { kind: 'session', token: 'a.b.c' }],
  [undefined, 'a.b.c', { kind: 'unreadable' }],
  ['Basic YTpi', undefined, { kind: 'unreadable' }],
  ['Bearer ', undefined, { kind: 'unreadable' }],
  [`Bearer ${token}x`, undefined, { kind: 'unreadable' }],
  [`Bearer ${token}, Bearer ${token}`, undefined, { kind: 'unreadable' }],
  [`Bearer ${'a'.repeat(3_000)}.b.c`, undefined, { kind: 'unreadable' }],
  [undefined, undefined, undefined],
])('Authorization %s with X-API-Key %s', (authorization, apiKey, credential) => {
  expect(readCredential(authorization, apiKey)).toEqual(credential)
})

interface Counters {
  readonly request_count: number
  readonly last_used_at: number | null
}

async function opened() {
  const control = await openControl()
  const token = await control.key({ rate_limit_rpm: 5 })
  const stored = () =>
    readRow<Counters>(control.store, 'SELECT request_count, last_used_at FROM application_key')
  const ask = () => control.request('/api/v1/health', { token })
  return { ...control, token, stored, ask }
}

test('requests that were let in are counted in memory, and stored by the next tick, each once', async () => {
  const { ask, stored, access, tick, now, request, token } = await opened()
  await ask()
  tick(700)
  await ask()
  expect(await stored()).toEqual({ request_count: 0, last_used_at: null })
  const ticks = [access.tick(), access.tick()]
  for (let i = 0; i < 9; i += 1) await ask()
  await request('/api/v1/health', { token: `${token.slice(0, -1)}~` })
  await Promise.all(ticks)
  await access.tick()
  // All of its five a minute are counted.
  expect(await stored()).toEqual({ request_count: 5, last_used_at: now() })
})

onSqlite('handle')('counters that cannot be stored now are stored later', async () => {
  const { ask, stored, access, store } = await opened()
  await ask()
  localOf(store).sqlite.pragma('query_only = ON')
  await expect(access.tick()).rejects.toThrow(/readonly/)
  localOf(store).sqlite.pragma('query_only = OFF')
  await ask()
  await access.tick()
  expect((await stored())?.request_count).toBe(2)
})

const day = 86_400_000

const minute = 60_000

onSqlite('one process')(
  'the requests of each day are kept for thirty days, also after a clock that was ahead',
  async () => {
    const { ask, tick, jump, access, store, request, token } = await opened()
    const self = await request('/api/v1/application-keys/self', { token })
    const { uuid } = self.data<{ uuid: string }>()
    const rows = () => readValue(store, 'SELECT count(*) FROM application_key_day')
    jump(400 * day)
    await ask()
    await access.tick()
    jump(-400 * day)
    for (let index = 0; index < 40; index += 1) {
      tick(day)
      await ask()
      if (index === 39) await ask()
      await access.tick()
    }
    const answer = await request(`/api/v1/application-keys/${uuid}/usage`, { token })
    const { days } = answer.data<{ days: { date: string; requests: number }[] }>()
    expect(days).toHaveLength(30)
    expect(days.at(-1)).toEqual({ date: '2026-02-10', requests: 2 })
    expect(days[0]).toEqual({ date: '2026-01-12', requests: 1 })
    expect(await rows()).toBe(30)
  },
)

test('the requests of the last sixty minutes are counted, of all instances and after a restart, and no others', async () => {
  const { ask, access, store, deps, now, tick } = await opened()
  const [one, other] = [access.usage, new KeyUsage(store, now)]
  const keyId = 1
  await ask()
  tick(30 * minute)
  other.seen(keyId, now())
  tick(minute)
  await access.tick()
  await other.flush()
  await ask()
  expect(await one.ofLastHour(keyId)).toBe(3)
  tick(minute)
  await access.tick()
  // An instance that starts now.
  expect(await new KeyUsage(store, deps.now).ofLastHour(keyId)).toBe(3)
  tick(28 * minute)
  expect(await one.ofLastHour(keyId)).toBe(2)
  tick(31 * minute)
  await ask()
  expect(await one.ofLastHour(keyId)).toBe(1)
  tick(minute)
  await access.tick()
  expect(await readValue(store, 'SELECT count(*) FROM application_key_minute')).toBe(1)
  tick(60 * minute)
  expect(await one.ofLastHour(keyId)).toBe(0)
})
