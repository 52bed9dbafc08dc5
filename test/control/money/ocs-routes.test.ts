import { errorHandler } from '../../../control/http/front.ts'
import { Hono } from 'hono'
import { expect, test } from 'vitest'
import type { KeyPrincipal } from '../../../control/auth/principal.ts'
import { expandScopes } from '../../../control/auth/scopes.ts'
import { ocsRoutes } from '../../../control/money/ocs-routes.ts'
import type { ControlEnv } from '../../../control/http/control-env.ts'
import { type Books, customerWith } from '../../support/books.ts'
import { documentOf } from '../../support/documented.ts'
import { serve } from '../../support/in-memory-http.ts'
import { execute } from '../../../schema/sql/query.ts'
import { readColumn, readRow } from '../../support/stored.ts'
import { turnOfEventLoop } from '../../support/waiting.ts'

function nodeWith(scopes: readonly string[]): KeyPrincipal {
  return {
    kind: 'key',
    actor: 'key:node',
    scopeLabels: scopes,
    scopes: expandScopes(scopes),
    tenantId: null,
    tenantSlug: null,
    domain: null,
    keyId: 1,
    uuid: 'node',
    ownerUsername: null,
    name: 'node',
    keyPrefix: 'bill_node000',
    limits: { rateLimitRpm: 1_200, expiresAt: null, allowedIps: [] },
  }
}

/** The routes as the API mounts them, behind a key with these scopes. */
function apiOf({ ocs, time, pass }: Books, scopes: readonly string[] = ['ocs']) {
  const routes = new Hono<ControlEnv>()
  routes.use((c, next) => {
    c.set('presented', { kind: 'accepted', principal: nodeWith(scopes) })
    c.set('correlationId', 'test')
    return next()
  })
  routes.onError(errorHandler(() => {}))
  routes.route(
    '/api/ocs',
    ocsRoutes(ocs, { now: time.now, randomBytes: (size) => Buffer.alloc(size, 7) }),
  )
  const app = serve(routes)
  const document = documentOf(app)
  const answer = async (method: string, name: string, response: Response | Promise<Response>) => {
    const { status } = await response
    const body: unknown = await (await response).json()
    const told = { method, path: `/api/ocs/${name}`, status, mediaType: 'application/json', body }
    expect(document.problemsOf(told)).toEqual([])
    return { status, body: Object(body) as Record<string, unknown> }
  }
  return {
    get: (query: string) => answer('GET', 'authorize', app.request(`/api/ocs/authorize?${query}`)),
    /** Time moves on while the answer waits for its group commit. */
    post: async (path: string, body: unknown) => {
      const response = app.request(`/api/ocs/${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      })
      for (let turn = 0; turn < 20; turn += 1) {
        await turnOfEventLoop()
        await pass(10)
      }
      return answer('POST', path, response)
    },
  }
}

const oneUnit = 1_000_000
const ask = 'caller=%2B15550001&callee=4930123'
const talked = (billsec: number) => ({
  call_uuid: 'a',
  caller: '+15550001',
  callee: '4930123',
  billsec,
})

test('authorize answers who pays, the price, and the grant that it reserved', async () => {
  const books = await customerWith(oneUnit)
  expect(await apiOf(books).get(`${ask}&call_uuid=a`)).toEqual({
    status: 200,
    body: {
      authorized: true,
      call_uuid: 'a',
      customer_id: 1,
      rate_prefix: '49',
      rate_per_minute: 0.1,
      connect_fee: 0.4,
      currency: 'USD',
      max_duration_seconds: 300,
      granted_seconds: 60,
      reserved: 0.6,
    },
  })
})

test('a minute at 0.05 by the second is reserved, charged and debited with 0.05', async () => {
  const books = await customerWith(oneUnit)
  const byTheSecond = { first_increment_seconds: 1, first_rate_per_minute_micros: 50_000 }
  const rate = { ...byTheSecond, increment_seconds: 1, rate_per_minute_micros: 50_000 }
  const row = { rate_plan_id: 1, prefix: '48', ...rate }
  await execute(books.store, books.store.db.insertInto('rate').values(row))
  await books.ocs.reloadRates()
  const api = apiOf(books)
  const call = { caller: '+15550001', callee: '48123' }
  const query = 'caller=%2B15550001&callee=48123&call_uuid=a'
  expect((await api.get(query)).body).toMatchObject({
    max_duration_seconds: 1_200,
    granted_seconds: 60,
    reserved: 0.05,
  })
  const report = { call_uuid: 'a', ...call, billsec: 60 }
  expect((await api.post('cdr', report)).body).toMatchObject({ cost: 0.05, balance_after: 0.95 })
})

test('the same call uuid asked again gets the same answer and reserves nothing more', async () => {
  const books = await customerWith(oneUnit)
  const api = apiOf(books)
  const first = await api.get(`${ask}&call_uuid=a`)
  expect(await api.get(`${ask}&call_uuid=a`)).toEqual(first)
  expect(books.ocs.balanceOf(1)).toMatchObject({ reservedMicros: 600_000n })
})

test('a denial has its own status and code, in the error envelope', async () => {
  const poor = apiOf(await customerWith(0))
  expect(await poor.get(ask)).toMatchObject({
    status: 402,
    body: { success: false, statusCode: 402, code: 'insufficient_funds' },
  })
  expect(await poor.get('caller=unknown&callee=49')).toMatchObject({
    status: 404,
    body: { code: 'unknown_caller' },
  })
  expect(await poor.get('caller=%2B15550001&callee=99')).toMatchObject({
    status: 404,
    body: { code: 'no_rate' },
  })
  const limited = apiOf(await customerWith(10 * oneUnit, { max_concurrent_calls: 1 }))
  await limited.get(`${ask}&call_uuid=a`)
  expect(await limited.get(`${ask}&call_uuid=b`)).toMatchObject({
    status: 403,
    body: { code: 'concurrent_limit' },
  })
})

test('extend answers the whole grant and what is reserved for it', async () => {
  const api = apiOf(await customerWith(oneUnit))
  await api.get(`${ask}&call_uuid=a`)
  expect(await api.post('extend', { call_uuid: 'a', used_seconds: 30 })).toEqual({
    status: 200,
    body: { call_uuid: 'a', granted_seconds: 90, reserved: 0.65 },
  })
  expect(await api.post('extend', { call_uuid: 'b', used_seconds: 30 })).toMatchObject({
    status: 404,
    body: { code: 'unknown_call' },
  })
})

test('a reported call is charged, and its reservation is gone', async () => {
  const books = await customerWith(oneUnit)
  const api = apiOf(books)
  await api.get(`${ask}&call_uuid=a`)
  expect(await api.post('cdr', talked(85))).toEqual({
    status: 200,
    body: {
      call_uuid: 'a',
      cost: 0.6417,
      cost_exact: '0.6417',
      currency: 'USD',
      balance_after: 0.3583,
      duplicate: false,
    },
  })
  expect(books.ocs.balanceOf(1)).toMatchObject({ balanceMicros: 358_300n, reservedMicros: 0n })
})

test('the record of a reported call says that its node let it pass without an answer', async () => {
  const books = await customerWith(2 * oneUnit)
  const api = apiOf(books)
  await api.post('cdr', { ...talked(10), unauthorized_by_ocs: true })
  await api.post('cdr', { ...talked(10), call_uuid: 'b' })
  const marks = 'SELECT is_unauthorized_by_ocs FROM cdr ORDER BY call_uuid'
  expect(await readColumn(books.store, marks)).toEqual([1, 0])
})

test('the same report again is a duplicate with the same numbers, also after other money moved', async () => {
  const books = await customerWith(2 * oneUnit)
  const api = apiOf(books)
  const first = await api.post('cdr', talked(85))
  await api.post('cdr', { ...talked(20), call_uuid: 'b' })
  expect(await api.post('cdr', talked(85))).toEqual({
    status: 200,
    body: { ...first.body, duplicate: true },
  })
  expect(await books.ocs.check()).toEqual([])
})

test('the same call with another duration is refused, charged nothing, and kept for audit', async () => {
  const books = await customerWith(2 * oneUnit)
  const api = apiOf(books)
  await api.post('cdr', talked(85))
  const balance = books.ocs.balanceOf(1)
  expect(await api.post('cdr', talked(86))).toMatchObject({
    status: 409,
    body: { code: 'cdr_conflict' },
  })
  expect(books.ocs.balanceOf(1)).toEqual(balance)
  expect(
    await readRow(books.store, 'SELECT billsec, body FROM ocs_report WHERE is_conflict = 1'),
  ).toEqual({ billsec: 86, body: JSON.stringify(talked(86)) })
})

test.each([
  [{ disposition: 'ANSWERED' }],
  [{ answer_stamp: '2026-01-05T10:00:00Z' }],
  [{ sip_code: 200 }],
  [{ disposition: 'ANSWERED', sip_code: 200, answer_stamp: null }],
  [{ disposition: 'FAILED', answer_stamp: '2026-01-05T10:00:00Z' }],
])('a report of 0 s with %o is that of an answered call: it costs a second', async (told) => {
  const books = await customerWith(2 * oneUnit)
  const api = apiOf(books)
  expect((await api.post('cdr', { ...talked(0), ...told })).body).toMatchObject({ cost: 0.6 })
  expect(await readColumn(books.store, 'SELECT billsec FROM cdr')).toEqual([1])
  expect((await api.post('cdr', talked(1))).body).toMatchObject({ cost: 0.6, duplicate: true })
})

test.each([
  [{}],
  [{ disposition: 'NO ANSWER' }],
  [{ disposition: 'BUSY', sip_code: 200 }],
  [{ sip_code: 487, answer_stamp: null }],
])('a report of 0 s with %o is that of an unanswered call: it is free', async (told) => {
  const books = await customerWith(2 * oneUnit)
  expect((await apiOf(books).post('cdr', { ...talked(0), ...told })).body).toMatchObject({
    cost: 0,
  })
  expect(await readColumn(books.store, 'SELECT billsec FROM cdr')).toEqual([0])
})

test('a call that was never authorized is charged to the customer of its caller', async () => {
  const books = await customerWith(oneUnit)
  expect((await apiOf(books).post('cdr', talked(20))).body).toMatchObject({ cost: 0.6 })
  expect(await readRow(books.store, 'SELECT customer_id, rate_prefix FROM cdr')).toEqual({
    customer_id: 1,
    rate_prefix: '49',
  })
})

test('a report without a customer is stored and costs nothing', async () => {
  const report = { ...talked(20), caller: 'unknown' }
  expect((await apiOf(await customerWith(oneUnit)).post('cdr', report)).body).toMatchObject({
    cost: 0,
    balance_after: null,
    duplicate: false,
  })
})

test.each(['4930123', '49-30.123', '(49)%2030123', '%2534930123', '4930123;phone-context=%2B1'])(
  'a callee written as %s is priced and recorded as its number',
  async (callee) => {
    const books = await customerWith(oneUnit)
    const { get, post } = apiOf(books)
    const asked = await get(`caller=%2B1-555-0001&callee=${callee}&call_uuid=a`)
    expect(asked).toMatchObject({ status: 200, body: { rate_prefix: '49', customer_id: 1 } })
    const body = { ...talked(20), caller: '+1 (555) 0001', callee: decodeURIComponent(callee) }
    expect((await post('cdr', body)).body).toMatchObject({ cost: 0.6 })
    const numbers = 'SELECT caller_id_number AS caller, destination_number AS callee FROM cdr'
    expect(await readRow(books.store, numbers)).toEqual({ caller: '+15550001', callee: '4930123' })
  },
)

test('a callee that is no number is not authorized; a name has the price of its digits', async () => {
  const { get } = apiOf(await customerWith(oneUnit))
  for (const callee of ['4%2B9', '%2B%2B49', '-', '%EF%BC%94%EF%BC%99', '49%252F'])
    expect((await get(`caller=%2B15550001&callee=${callee}`)).status).toBe(400)
  for (const callee of ['49FLOWERS', '4-9-FLOWERS', '4x9', '(49)F'])
    expect((await get(`caller=%2B15550001&callee=${callee}`)).body).toMatchObject({
      rate_prefix: '49',
    })
})

test('a call that has been is recorded whatever it was called', async () => {
  const books = await customerWith(oneUnit)
  const { post } = apiOf(books)
  const reported = await post('cdr', { ...talked(20), callee: '49/-30' })
  expect(reported).toMatchObject({ status: 200, body: { cost: 0.6 } })
})
