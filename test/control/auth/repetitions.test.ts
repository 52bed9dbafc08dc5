import { beforeAll, expect, test } from 'vitest'
import { documentOf } from '../../support/documented.ts'
import { fillOwned, ownPath } from '../../support/owned-world.ts'
import { operations } from '../../support/ownership-rules.ts'
import { openResources, type TestResources } from '../../support/resources.ts'

type Json = Readonly<Record<string, unknown>>

let world: TestResources
let ownKey: string
/** Every POST of the OpenAPI document, and whether it takes an Idempotency-Key. */
let posts: readonly { readonly path: string; readonly isRepeatable: boolean }[]

beforeAll(async () => {
  world = await openResources()
  ;({ ownKey } = await fillOwned(world))
  const paths = documentOf(world.app).document['paths'] as Record<string, { post?: Json }>
  posts = Object.entries(paths).flatMap(([path, { post }]) =>
    post === undefined
      ? []
      : [{ path, isRepeatable: JSON.stringify(post['parameters'] ?? '').includes('Idempotency') }],
  )
})

const send = (path: string, body: unknown, options: { token?: string } = {}) => {
  world.tick(100)
  const headers = { 'Idempotency-Key': `once ${path}`.replaceAll(' ', '-') }
  return world.call('POST', path, body, { headers, ...options })
}

async function customerToken(): Promise<string> {
  const login = { email: 'own@customer.example', password: 'a long password' }
  const made = await world.call('POST', '/api/v1/customers', { name: 'signed in', ...login })
  expect(made.status).toBe(201)
  const session = await world.request('/api/client/auth/login', { method: 'POST', body: login })
  return session.data<{ token: string }>().token
}

/** They sign somebody in or out, load again, ask, or are known by what they report. */
const refusing = [
  '/api/client/auth/login',
  '/api/client/auth/logout',
  '/api/client/payments/webhook',
  '/api/ocs/cdr',
  '/api/ocs/extend',
  '/api/v1/auth/login',
  '/api/v1/auth/login/code',
  '/api/v1/auth/login/enrolment',
  '/api/v1/auth/logout',
  '/api/v1/auth/second-factor',
  '/api/v1/auth/second-factor/confirmation',
  '/api/v1/auth/second-factor/recovery-codes',
  '/api/v1/auth/second-factor/removal',
  '/api/v1/auth/session',
  '/api/v1/auth/session/code',
  '/api/v1/dispatcher/reload',
  '/api/v1/numbers/import',
  '/api/v1/rates/decks',
  '/api/v1/rates/decks/diff',
  '/api/v1/rates/decks/preview',
  '/api/v1/rates/decks/{id}/undo',
  '/api/v1/rates/import',
  '/api/v1/rates/reratings',
  '/api/v1/rates/reratings/preview',
  '/api/v1/rates/reratings/{id}/undo',
  '/api/v1/telephony/simulate',
  '/decide',
]

test('whatever creates or moves something honours an Idempotency-Key; the rest refuses it by name', async () => {
  const unrepeatable = posts.filter(({ isRepeatable }) => !isRepeatable).map(({ path }) => path)
  expect(unrepeatable.toSorted()).toEqual(refusing)
  expect(posts.length - refusing.length).toBeGreaterThan(30)
  const token = await customerToken()
  for (const path of refusing) {
    const isOfCustomer = path === '/api/client/auth/logout'
    const { status, code } = await send(path, {}, isOfCustomer ? { token } : {})
    // The id of its event says what is a repetition.
    const isOfProvider = path === '/api/client/payments/webhook'
    expect([path, status, code === 'idempotency_not_supported']).toEqual([path, 400, !isOfProvider])
  }
})

test('a path or a credential that is wrong is told before an Idempotency-Key that is not honoured', async () => {
  const headers = { 'Idempotency-Key': 'once' }
  const post = (path: string, options: object) =>
    world.request(path, { method: 'POST', body: {}, headers, ...options })
  const missing = await world.call('POST', '/api/v1/nonexistent', {}, { headers })
  expect([missing.status, missing.code]).toEqual([404, 'not_found'])
  const readOnly = await world.call('POST', '/api/v1/audit', {}, { headers })
  expect([readOnly.status, readOnly.headers.get('allow')]).toEqual([405, 'GET, HEAD, OPTIONS'])
  const stranger = await post('/api/v1/rates/import', { token: 'wrong' })
  expect([stranger.status, stranger.code]).toEqual([401, 'unauthorized'])
  const reader = await world.key({ scopes: ['rates:read'] })
  const other = await post('/api/v1/rates/import', { token: reader })
  expect([other.status, other.code]).toEqual([403, 'insufficient_scope'])
})

const bodies: Readonly<Record<string, Json>> = {
  '/customers/{id}/wallet/adjust': { amount: '5', reason: 'a test' },
  '/webhooks/{id}/rotate': {},
}

test('a repetition is answered as the first request, does nothing again, and says so in the audit log', async () => {
  const made: string[] = []
  for (const { path } of posts.filter(({ isRepeatable }) => isRepeatable)) {
    const collection = path.replace('/api/v1', '')
    const body = bodies[collection] ?? operations[collection]?.body ?? {}
    const first = await send(ownPath(path, ownKey), body)
    const again = await send(ownPath(path, ownKey), body)
    // Refused before it was carried out: nothing is stored, and it is refused again.
    const isCarriedOut = first.status < 300
    if (!isCarriedOut) expect([path, again.status]).toEqual([path, first.status])
    else {
      made.push(path)
      const isAgain = again.headers.get('idempotency-replayed') === 'true'
      expect([path, again.status, isAgain]).toEqual([path, first.status, true])
      expect(withoutSecrets(again.body)).toEqual(withoutSecrets(first.body))
    }
  }
  expect(made.length).toBeGreaterThan(12)
  expect(made).toContain('/api/v1/customers/{id}/wallet/adjust')
  const period = 'start_date=2026-01-01T00:00:00Z&end_date=2026-02-01T00:00:00Z'
  const { body } = await world.call('GET', `/api/v1/audit?${period}&target=/wallet/adjust`)
  const { data } = body as { readonly data: readonly Json[] }
  expect(data).toMatchObject([
    { code: 'idempotency_replayed', after_digest: null },
    { code: null, after_digest: expect.any(String) },
  ])
  const { body: ledger } = await world.call('GET', '/api/v1/customers/3/ledger')
  expect((ledger as { data: unknown[] }).data).toHaveLength(1)
})

const withoutSecrets = (body: unknown): unknown => {
  const { data = body } = Object(body) as { readonly data?: object }
  const { token: _t, token_omitted: _to, secret: _s, secret_omitted: _so, ...rest } = data as Json
  return rest
}
