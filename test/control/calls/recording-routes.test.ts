import fc from 'fast-check'
import '../../support/property-seed.ts'
import { createHash } from 'node:crypto'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, expect, onTestFinished, test } from 'vitest'
import type { RecordingResult } from '../../../schema/contracts/calls.ts'
import { execute } from '../../../schema/sql/query.ts'
import { openControl, startOfTime, type TestControl } from '../../support/control.ts'
import { activeCall } from '../../support/engine-views.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { byteRange } from '../../../control/calls/recording-routes.ts'
import { RecordingReaders } from '../../../control/calls/recording-readers.ts'

const uuid = '019ab0c4-1e7f-7a37-9d1f-0f6a5f5e9c11'

const audio = Buffer.from(Array.from({ length: 1_000 }, (_, at) => (at * 7) % 251))

const sha256 = createHash('sha256').update(audio).digest('hex')

const folder = temporaryFolder()

const file = join(folder, `${uuid}.wav`)

let control: TestControl

beforeEach(async () => {
  control = await openControl({ recordingsPath: folder })
  await control.tenant('acme', ['acme.example'])
  await control.tenant('beta', ['beta.example'])
  writeFileSync(file, audio)
  const row = { call_uuid: uuid, tenant_id: 1, started_at: startOfTime, duration_ms: 1_300 }
  const { store } = control
  const query = store.db.insertInto('recording').values({ ...row, bytes: audio.length, sha256 })
  await execute(store, query)
})

const keyOf = (tenant_slug: string) =>
  control.key({ kind: 'pbx', tenant_scope: 'tenant', tenant_slug })

async function get(headers: Record<string, string> = {}, method = 'GET', given?: string) {
  const token = given ?? (await keyOf('acme'))
  const response = await control.app.request(`/calls/${uuid}/recording`, {
    method,
    headers: { authorization: `Bearer ${token}`, ...headers },
  })
  return { response, bytes: Buffer.from(await response.arrayBuffer()) }
}

test('the tenant of a call hears it, and can tell that it is whole', async () => {
  const { response, bytes } = await get()
  expect(response.status).toBe(200)
  expect(bytes.equals(audio)).toBe(true)
  expect(Object.fromEntries(response.headers)).toMatchObject({
    'content-type': 'audio/wav',
    'content-length': '1000',
    'accept-ranges': 'bytes',
    etag: `"${sha256}"`,
    'content-disposition': `attachment; filename="${uuid}.wav"`,
  })
})

test('a range behind the end, and one of another file', async () => {
  const { response } = await get({ range: 'bytes=1000-' })
  expect([response.status, response.headers.get('content-range')]).toEqual([416, 'bytes */1000'])
  const other = await get({ range: 'bytes=0-9', 'if-range': '"other"' })
  expect([other.response.status, other.bytes.length]).toEqual([200, 1_000])
  const same = await get({ range: 'bytes=0-9', 'if-range': `"${sha256}"` })
  expect([same.response.status, same.bytes.length]).toEqual([206, 10])
})

test('a tenant that reads nothing of what it asks for takes no place of others', async () => {
  // Longer than what is read ahead.
  const bytes = 4_000_000
  const other = uuid.replace('019a', '029a')
  const row = { call_uuid: other, tenant_id: 1, started_at: startOfTime, duration_ms: 1, sha256 }
  await execute(control.store, control.store.db.insertInto('recording').values({ ...row, bytes }))
  writeFileSync(join(folder, `${other}.wav`), Buffer.alloc(bytes))
  const open = async (token: string) => {
    const headers = { authorization: `Bearer ${token}` }
    const response = await control.app.request(`/calls/${other}/recording`, { headers })
    onTestFinished(() => response.body?.cancel())
    return response
  }
  const [acme, operator] = [await keyOf('acme'), await control.key()]
  const statuses: number[] = []
  for (let count = 0; count < 17; count++) statuses.push((await open(acme)).status)
  expect(statuses).toEqual([...Array.from({ length: 16 }, () => 200), 503])
  expect((await open(operator)).status).toBe(200)
})

test('another tenant, and a key without the scope, hear nothing', async () => {
  expect((await get({}, 'GET', await keyOf('beta'))).response.status).toBe(404)
  const reader = await control.key({ scopes: ['*:read', 'calls:*'] })
  expect((await get({}, 'GET', reader)).response.status).toBe(403)
  const unknown = await control.request(`/calls/${uuid.replace('019a', '029a')}/recording`, {
    token: await keyOf('acme'),
  })
  expect([unknown.status, unknown.code]).toEqual([404, 'not_found'])
  for (const path of ['..%2f..%2fetc%2fpasswd', 'x'])
    expect(
      (await control.request(`/calls/${path}/recording`, { token: await keyOf('acme') })).status,
    ).toBeOneOf([400, 404])
})

test('a key that may write removes it, and its file', async () => {
  const remove = (token: string) =>
    control.request(`/calls/${uuid}/recording`, { method: 'DELETE', token })
  expect((await remove(await control.key({ scopes: ['recordings:listen'] }))).status).toBe(403)
  expect((await remove(await keyOf('beta'))).status).toBe(404)
  expect((await remove(await keyOf('acme'))).data()).toEqual({ call_uuid: uuid, deleted: true })
  expect(existsSync(file)).toBe(false)
  expect((await get()).response.status).toBe(404)
})

const call = activeCall({
  callUuid: uuid,
  tenantId: 1,
})

const start = async (token?: string, action = 'start') =>
  control.request('/telephony/recording', {
    token: token ?? (await keyOf('acme')),
    method: 'POST',
    body: { call_uuid: uuid, action },
  })

test('a live call is recorded on demand, and the list of live calls shows it', async () => {
  const asked: string[] = []
  control.engine.activeCalls.push(call)
  const recordings = {
    isAvailable: true,
    isRecording: () => asked.at(-1) === 'start',
    control: (_: string, action: 'start' | 'stop') => {
      asked.push(action)
      return Promise.resolve({ kind: action === 'start' ? 'recording' : 'stopped' } as const)
    },
  }
  Object.assign(control.engine.recordings, recordings)
  const shown = async () =>
    (await control.request('/pbx/calls/active', { token: await keyOf('acme') })).body
  expect((await start()).data()).toEqual({ call_uuid: uuid, status: 'recording' })
  expect(await shown()).toMatchObject([{ call_uuid: uuid, recording: true }])
  expect((await start(await keyOf('acme'), 'stop')).data()).toEqual({
    call_uuid: uuid,
    status: 'stopped',
  })
  expect(await shown()).toMatchObject([{ recording: false }])
})

test.each([
  ['unknown_call', 404, 'not_found'],
  ['call_not_answered', 409, 'call_not_answered'],
  ['recording_not_allowed', 409, 'recording_not_allowed'],
  ['call_not_anchored', 409, 'call_not_anchored'],
  ['relay_failed', 503, 'relay_failed'],
  ['recording_unavailable', 501, 'recording_unavailable'],
] as const)('%s is %i', async (kind, status, code) => {
  control.engine.activeCalls.push(call)
  const result: RecordingResult = { kind }
  Object.assign(control.engine.recordings, { control: () => Promise.resolve(result) })
  const answer = await start()
  expect([answer.status, answer.code]).toEqual([status, code])
})

const part = (start: number, end: number) => ({ kind: 'part', start, end })

test.each([
  [undefined, { kind: 'whole' }],
  ['bytes=0-', part(0, 99)],
  ['bytes=10-19', part(10, 19)],
  ['bytes=90-1000', part(90, 99)],
  ['Bytes= 99-99', part(99, 99)],
  ['bytes=-10', part(90, 99)],
  ['bytes=-1000', part(0, 99)],
  ['bytes=100-', { kind: 'unsatisfiable' }],
  ['bytes=-0', { kind: 'unsatisfiable' }],
  ['bytes=20-10', { kind: 'whole' }],
  ['bytes=-', { kind: 'whole' }],
  ['bytes=0-1,5-6', { kind: 'whole' }],
  ['seconds=0-1', { kind: 'whole' }],
  ['bytes=a-b', { kind: 'whole' }],
])('of 100 bytes, %s asks for %o', (header, expected) => {
  expect(byteRange(header, 100)).toEqual(expected)
})

test('a part is always within the whole', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 5_000 }), fc.nat(9_999), fc.nat(9_999), (size, a, b) => {
      for (const header of [`bytes=${a}-${b}`, `bytes=-${a}`, `bytes=${a}-`]) {
        const range = byteRange(header, size)
        if (range.kind !== 'part') continue
        expect(range.start).toBeLessThanOrEqual(range.end)
        expect(range.end).toBeLessThan(size)
      }
    }),
  )
})

test('16 readers of one tenant and 64 in all; each that leaves makes place', () => {
  const readers = new RecordingReaders()
  const enter = (tenantId: number | null, count: number) =>
    Array.from({ length: count }, () => readers.enter(tenantId)).filter((leave) => leave)
  const [leave, ...others] = enter(1, 20)
  expect(others).toHaveLength(15)
  expect(enter(null, 70)).toHaveLength(48)
  expect(enter(2, 1)).toEqual([])
  leave?.()
  expect(enter(2, 2)).toHaveLength(1)
})
