import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { MAX_SKEW_MS } from '../../../control/instances/admit-instance.ts'
import { UsedNonces } from '../../../control/instances/used-nonces.ts'
import {
  bodyHash,
  type InstanceClaims,
  sealToken,
} from '../../../control/instances/instance-token.ts'
import { startOfTime } from '../../support/control.ts'
import { activeCall } from '../../support/engine-views.ts'
import { joinInstances, type JoinedInstance, sharedKey } from '../../support/joined-nodes.ts'
import type { InstanceStatus } from '../../../schema/contracts/instances.ts'
import { membershipOf } from '../../../control/instances/membership.ts'

const uuid = '00000000-0000-4000-8000-000000000001'

const active = '/api/v1/pbx/calls/active'

const question = '/api/v1/nodes/question'

const call = activeCall({
  callUuid: uuid,
  setId: 1,
})

async function two() {
  const joined = await joinInstances(['a', 'b'])
  const [a, b] = joined.instances as [JoinedInstance, JoinedInstance]
  b.engine.activeCalls.push(call)
  return { ...joined, a, b }
}

let count = 0

const randomBytes = (size: number): Buffer =>
  createHash('sha512')
    .update(`${(count += 1)}`)
    .digest()
    .subarray(0, size)

/** A token as `a` makes it for `b`, but for what `made` says. */
function tokenFor(
  target: string,
  made: Partial<InstanceClaims> = {},
  { method = 'GET', key = sharedKey, body = '' } = {},
): string {
  const hash = bodyHash(Buffer.from(body))
  const claims = { from: 'a', to: 'b', at: startOfTime, address: '198.51.100.7', body: hash }
  return sealToken(key, { method, target }, { ...claims, ...made }, randomBytes).token
}

const headerOf = (raw: string, name: string): string | undefined =>
  new RegExp(`^${name}: (.*)\r$`, 'im').exec(raw)?.[1]

test('the credential does not leave an instance in clear, and neither do cookies or repetition keys', async () => {
  const { a, b, control } = await two()
  const token = await control.key()
  const headers = { 'Idempotency-Key': 'once' }
  await a.request('/api/v1/telephony/hangup', { token, headers, body: { call_uuid: uuid } })
  const sent = b.received.join('')
  expect(sent).toContain(`POST /api/v1/telephony/hangup`)
  for (const secret of [token, 'authorization', 'idempotency-key', 'cookie'])
    expect(sent.toLowerCase()).not.toContain(secret.toLowerCase())
})

test('an instance asks with the address of the client, which the limits of a key are held against', async () => {
  const { a, b, control } = await two()
  const token = await control.key({ allowed_ips: ['203.0.113.0/24'] })
  const inside = await a.request(active, { token, from: '203.0.113.9' })
  expect(inside.body).toHaveLength(1)
  expect(inside.headers.get('x-unreachable-nodes')).toBeNull()
  const outside = await a.request(active, { token, from: '198.51.100.7' })
  expect([outside.status, outside.code]).toEqual([403, 'address_not_allowed'])
  expect(b.received).toHaveLength(1)
})

test('a captured request is answered once, on its instance, with its method, path and body', async () => {
  const { a, b, control } = await two()
  const token = await control.key()
  b.engine.calls.hangUp = () => 'ending'
  const body = JSON.stringify({ call_uuid: uuid })
  await a.request('/api/v1/telephony/hangup', { token, body })
  const captured = headerOf(b.received.join(''), 'x-tollgate-node') ?? ''
  expect(captured).toMatch(/^[\w-]{100,}$/)
  for (const instance of [a, b]) {
    const headers = { 'X-Tollgate-Node': captured }
    const replayed = await instance.request(active, { headers })
    expect([replayed.status, replayed.code]).toEqual([401, 'unauthorized'])
    expect(replayed.headers.get('x-tollgate-node')).toBeNull()
  }
  const hangup = '/api/v1/telephony/hangup'
  const again = sealed(hangup, body, { authorization: `Bearer ${token}` })
  const first = await b.request(hangup, { headers: again, body })
  expect([first.status, first.headers.get('x-ratelimit-limit')]).toEqual([200, null])
  const second = await b.request(hangup, { headers: again, body })
  expect(second.status).toBe(401)
  const other = sealed(hangup, body, { authorization: `Bearer ${token}` })
  const changed = await b.request(hangup, { headers: other, body: `${body} ` })
  expect(changed.status).toBe(401)
})

const sealed = (target: string, body: string, made: Partial<InstanceClaims>) => ({
  'X-Tollgate-Node': tokenFor(target, made, { method: 'POST', body }),
})

test.each([
  ['another key', {}, { key: Buffer.alloc(32, 8) }],
  ['another node', { to: 'c' }, {}],
  ['another method', {}, { method: 'DELETE' }],
  ['a time that is too old', { at: startOfTime - MAX_SKEW_MS - 1 }, {}],
  ['a time that is too new', { at: startOfTime + MAX_SKEW_MS + 1 }, {}],
  ['a time before the start of the node', { at: startOfTime - 1 }, {}],
  ['another body', { body: bodyHash(Buffer.from('x')) }, {}],
] as const)('a token for %s means nothing', async (_, made, how) => {
  const { b, control } = await two()
  const key = await control.key({ rate_limit_rpm: 5 })
  const authorization = `Bearer ${key}`
  const good = { 'X-Tollgate-Node': tokenFor(active, { authorization }) }
  expect((await b.request(active, { headers: good })).status).toBe(200)
  const forged = { 'X-Tollgate-Node': tokenFor(active, { authorization, ...made }, how) }
  const alone = await b.request(active, { headers: forged })
  expect([alone.status, alone.headers.get('x-tollgate-node')]).toEqual([401, null])
  // With a credential of its own it is the request of a client: limited, counted, and from its own
  // address.
  const limited = await b.request(active, { headers: forged, token: key })
  expect(limited.headers.get('x-ratelimit-limit')).toBe('5')
})

test.each([
  '',
  'x',
  'é',
  'A'.repeat(43),
  'A'.repeat(13_000),
  Buffer.alloc(80).toString('base64url'),
])('what is no token at all changes nothing: %.12s', async (text) => {
  const { b, control } = await two()
  const headers = { 'X-Tollgate-Node': encodeURIComponent(text) }
  const { status, body } = await b.request(active, { headers, token: await control.key() })
  expect(status).toBe(200)
  expect(body).toHaveLength(1)
})

test('a client cannot name its address, ask what instances ask, or switch off the other instances', async () => {
  const { a, control } = await two()
  const token = await control.key({ allowed_ips: ['203.0.113.9'] })
  const claims = Buffer.from(JSON.stringify({ from: 'b', to: 'a', address: '203.0.113.9' }))
  const headers = { 'X-Tollgate-Node': claims.toString('base64url') }
  expect((await a.request(active, { headers, token })).status).toBe(403)
  const from = '203.0.113.9'
  expect((await a.request(active, { headers, token, from })).body).toHaveLength(1)
  const asked = await a.request(question, { headers, token, from })
  expect([asked.status, asked.code]).toEqual([404, 'not_found'])
})

test('a request that instances make for themselves has no rights of a client', async () => {
  const { b } = await two()
  const locate = { kind: 'locate', callUuid: uuid }
  const headersFor = (target: string, method = 'GET') => ({
    'X-Tollgate-Node': tokenFor(target, { question: locate }, { method }),
  })
  expect((await b.request(question, { headers: headersFor(question) })).status).toBe(200)
  expect((await b.request(active, { headers: headersFor(active) })).status).toBe(401)
  const wrong = { 'X-Tollgate-Node': tokenFor(question, { question: { kind: 'all' } }) }
  expect((await b.request(question, { headers: wrong })).status).toBe(404)
})

test('an instance that is asked by an instance asks no further, so nothing goes round', async () => {
  const { instances, control } = await joinInstances(['a', 'b', 'c'])
  const [a, b, c] = instances as [JoinedInstance, JoinedInstance, JoinedInstance]
  const token = await control.key()
  await a.request(active, { token })
  await a.request(`/api/v1/pbx/calls/${uuid}`, { token })
  expect([a, b, c].map(({ received }) => received.length)).toEqual([0, 2, 2])
})

test('the rate limit of a key counts a request once, however many instances it asks', async () => {
  const { a, control } = await two()
  const token = await control.key({ rate_limit_rpm: 3 })
  const statuses: number[] = []
  for (let index = 0; index < 4; index += 1) {
    const { status, headers } = await a.request(active, { token })
    statuses.push(status)
    expect(headers.get('x-unreachable-nodes')).toBeNull()
  }
  expect(statuses).toEqual([200, 200, 200, 429])
})

test('a server that took the address of an instance is not heard and learns nothing', async () => {
  const joined = await joinInstances(['a', 'b'], {
    keyOf: (name) => (name === 'b' ? Buffer.alloc(32, 9) : sharedKey),
  })
  const [a, b] = joined.instances as [JoinedInstance, JoinedInstance]
  b.engine.activeCalls.push(call)
  const token = await joined.control.key()
  const { body, headers } = await a.request(active, { token })
  expect(body).toEqual([])
  expect(headers.get('x-unreachable-nodes')).toBe('b')
  expect(b.received.join('')).not.toContain(token)
  const [logged] = joined.control.logged
  expect(logged?.message).toBe(
    'another instance does not answer: its part is missing from responses',
  )
  expect(JSON.stringify(joined.control.logged)).not.toContain(token)
})

test('a nonce counts once for as long as it has to be remembered', () => {
  for (const at of [0, 1, 999, 1_000, 1_500, 1_999]) {
    const used = new UsedNonces(1_000, 0)
    expect(used.take('a', at)).toBe(true)
    for (const later of [0, 1, 500, 999, 1_000]) expect(used.take('a', at + later)).toBe(false)
    expect(used.take('b', at + 1_000)).toBe(true)
  }
})

const now = 10_000_000_000

const key = Buffer.alloc(32)

const listed: InstanceStatus = {
  epoch: 1,
  version: '1',
  liveCalls: 0,
  startedAt: 0,
  name: 'b',
  address: 'http://10.0.0.2:8080',
  sipUri: null,
  sipAddresses: [],
  isThis: false,
  state: 'serving',
  heartbeatAt: now - 500,
  clockDifferenceMs: 0,
}

function peersOf(...instances: readonly Partial<InstanceStatus>[]) {
  const list = () => instances.map((instance) => ({ ...listed, ...instance }))
  return membershipOf({ identity: { name: 'a', epoch: 1 }, list }, key, () => now).peers()
}

test('an instance is not its own peer, and one that has stopped is none', () => {
  expect(peersOf({ isThis: true }, { state: 'stopped' }, {})).toEqual([
    { name: 'b', apiUrl: 'http://10.0.0.2:8080', isAlive: true },
  ])
})

test('an instance that is lost, or does not serve yet, is named and not asked; after an hour it is forgotten', () => {
  expect(peersOf({ state: 'lost' })).toMatchObject([{ isAlive: false }])
  expect(peersOf({ state: 'starting' })).toMatchObject([{ isAlive: false }])
  expect(peersOf({ state: 'draining' })).toMatchObject([{ isAlive: true }])
  expect(peersOf({ state: 'lost', heartbeatAt: now - 3_600_001 })).toEqual([])
})

test.each(['', 'file:///etc/passwd', '10.0.0.2:8080', 'x'])(
  'an instance whose address is no URL of an API is not asked: %j',
  (address) => {
    expect(peersOf({ address })).toEqual([])
  },
)
