import { expect, test } from 'vitest'
import type {
  RoutingWebhooksPort,
  RoutingWebhookStatus,
} from '../../../schema/contracts/routing-webhooks.ts'
import { openResources } from '../../support/resources.ts'
import { readRows } from '../../support/stored.ts'

interface Shown {
  readonly id: number
  readonly secret?: string
  readonly [field: string]: unknown
}

const path = '/api/v1/routing-webhooks'
const url = 'https://crm.example/route'

/** The engine's part, which has a state of its own. */
class AskedPort implements RoutingWebhooksPort {
  #reloads = 0

  get reloads(): number {
    return this.#reloads
  }

  async reload(): Promise<void> {
    this.#reloads += 1
  }

  statusOf(): RoutingWebhookStatus | undefined {
    if (this.#reloads === 0) return undefined
    const none = { failed: 0, timeouts: 0, skipped: 0, cacheHits: 0, isResting: false }
    return { ...none, calls: 2, requests: 2, decided: 2, totalMs: 41, lastFailure: null }
  }

  async test(_: number, { from, to }: { readonly from: string; readonly to: string }) {
    return {
      outcome: 'decided',
      decision: { tags: { from, to } },
      reason: null,
      fallback: 'continue',
      ms: 1.5,
    } as const
  }
}

/** A platform with two tenants, each with a carrier and a set; and a carrier of the platform. */
async function openWebhooks() {
  const rig = await openResources()
  const port = new AskedPort()
  Object.assign(rig.engine, { routingWebhooks: port })
  for (const [index, slug] of ['acme', 'nova', null].entries()) {
    if (slug !== null) await rig.tenant(slug, [`${slug}.example`])
    const name = slug ?? 'transit'
    const gateways = [{ host: `198.18.${index}.9` }]
    await rig.call('POST', '/api/v1/routing/carriers', { name, tenant: slug, gateways })
    const nodes = [{ host: `198.18.${index}.1` }]
    const set = { endpoint_name: name, set_id: index + 1, algorithm: 8, tenant: slug, nodes }
    await rig.call('POST', '/api/v1/dispatcher', set)
  }
  const make = (body: object) => rig.call('POST', path, { url, ...body })
  return { ...rig, make, port }
}

test('the secret is generated, shown in the answer to the creation alone, and stored encrypted', async () => {
  const { make, call, store, port } = await openWebhooks()
  const made = await make({})
  expect(made.status).toBe(201)
  expect(made.headers.get('location')).toBe(`${path}/1`)
  const { secret, ...webhook } = made.data<Shown>()
  expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/)
  expect(webhook).toMatchObject({
    ...{ id: 1, url, tenant: null, carrier: null, set_id: null, timeout_ms: 200 },
    ...{ fallback: 'continue', cache_seconds: 0, cache_key: ['from', 'to'], enabled: true },
    status: { calls: 2, decided: 2, mean_ms: 20.5, is_resting: false, last_failure: null },
  })
  expect((await call('GET', `${path}/1`)).text).not.toContain('whsec_')
  expect((await call('GET', path)).text).not.toContain('whsec_')
  expect(JSON.stringify(await readRows(store, 'SELECT * FROM routing_webhook'))).not.toContain(
    'whsec_',
  )
  expect(port.reloads).toBe(1)
})

test('a repeated creation does not show the secret again', async () => {
  const { call } = await openWebhooks()
  const once = { headers: { 'Idempotency-Key': 'one' } }
  const first = (await call('POST', path, { url }, once)).data<Shown>()
  const again = (await call('POST', path, { url }, once)).data<Shown>()
  expect([again.id, again.secret]).toEqual([first.id, undefined])
  expect(again['secret_omitted']).toBeDefined()
})

test('a scope has one webhook, and a webhook has one scope', async () => {
  const { make } = await openWebhooks()
  const scopes = [
    ...[{}, { tenant: 'acme' }, { tenant: 'acme', carrier: 'acme' }, { tenant: 'nova', set: 2 }],
    ...[{ carrier: 'transit' }, { set: 'transit' }],
  ]
  for (const scope of scopes) expect((await make(scope)).status).toBe(201)
  for (const scope of scopes) {
    const answer = await make(scope)
    expect([answer.status, answer.code]).toEqual([409, 'duplicate'])
  }
  // Here it is no name that is taken.
  const message = 'has one for all its other calls: change that one, or name a carrier or a set'
  expect((await make({})).body).toMatchObject({ details: [{ path: 'tenant', message }] })
  expect((await make({ carrier: 'transit', set: 3 })).status).toBe(400)
})

test.each([
  ["a tenant's own", 'acme', { carrier: 'acme' }, 201],
  ['the carrier of another tenant', 'acme', { carrier: 'nova' }, 400],
  ["the platform's carrier", 'acme', { carrier: 'transit' }, 400],
  ['the set of another tenant', 'acme', { set: 2 }, 400],
  ["the platform's set", 'acme', { set: 3 }, 400],
  ['another tenant', 'acme', { tenant: 'nova' }, 403],
])('a tenant may scope a webhook to %s or not', async (_, tenant, scope, status) => {
  const { callAs } = await openWebhooks()
  expect((await callAs(tenant, 'POST', path, { url, ...scope })).status).toBe(status)
})

test.each([
  ["a tenant's webhook to the platform's carrier", { tenant: 'acme', carrier: 'transit' }],
  ["a tenant's webhook to another tenant's set", { tenant: 'acme', set: 2 }],
  ["the platform's webhook to a tenant's carrier", { carrier: 'acme' }],
])('the platform does not scope %s, whose decisions could not hold', async (_, scope) => {
  const { make } = await openWebhooks()
  expect((await make(scope)).status).toBe(400)
})

test.each([
  'http://127.0.0.1:8080/',
  'http://2130706433/',
  'http://0x7f.1/',
  'http://[::ffff:10.0.0.1]/',
  'http://169.254.169.254/latest/meta-data/',
  'http://localhost./',
  'https://user:word@crm.example/',
  'https://crm.example:22/',
  'http://crm.example:5060/',
  'ftp://crm.example/',
  'https://crm.example/#part',
])('nobody may write %s', async (wrong) => {
  const { make, call } = await openWebhooks()
  const refused = await make({ url: wrong })
  expect([refused.status, refused.text.includes('"path":"url"')]).toEqual([400, true])
  await make({})
  expect((await call('PATCH', `${path}/1`, { url: wrong })).status).toBe(400)
})

test.each([
  { timeout_ms: 19 },
  { timeout_ms: 2_001 },
  { cache_seconds: 86_401 },
  { cache_key: [] },
  { cache_key: ['headers'] },
  { fallback: 'allow' },
  { secret: 'whsec_short' },
  { secret: 'a secret of one’s own' },
  { free: true },
])('%j is refused', async (field) => {
  const { make } = await openWebhooks()
  expect((await make(field)).status).toBe(400)
})

test('an update keeps the secret, and its undo brings the url back', async () => {
  const { make, call, store } = await openWebhooks()
  await make({})
  const sealed = () => readRows(store, 'SELECT secret FROM routing_webhook')
  const before = await sealed()
  const changed = await call('PATCH', `${path}/1`, { url: `${url}/2`, cache_seconds: 60 })
  expect(changed.data<Shown>()).toMatchObject({ url: `${url}/2`, cache_seconds: 60 })
  const changeId = changed.headers.get('x-change-id') ?? ''
  await call('POST', `/api/v1/changes/${changeId}/undo`, { reason: 'a mistake' })
  expect((await call('GET', `${path}/1`)).data<Shown>()).toMatchObject({ url, cache_seconds: 0 })
  expect(await sealed()).toEqual(before)
})

test('a rotation shows a new secret once, and keeps the old one for the overlap', async () => {
  const { make, call, store, now } = await openWebhooks()
  const { secret } = (await make({})).data<Shown>()
  const rotated = await call('POST', `${path}/1/rotate`, { overlap_seconds: 60 })
  const { secret: fresh } = rotated.data<Shown>()
  expect([rotated.status, fresh === secret]).toEqual([200, false])
  const [row] = await readRows(store, 'SELECT * FROM routing_webhook')
  const place = { table: 'routing_webhook', column: 'previous_secret', row: 1 }
  expect(store.secrets.open(place, String(row?.['previous_secret']))).toBe(secret)
  expect(row?.['previous_secret_expires_at']).toBe(now() + 60_000)
})

test('a test question is answered with the decision and its time, for the owner alone', async () => {
  const { make, call, callAs } = await openWebhooks()
  await make({ tenant: 'acme' })
  const question = { from: '4930100', to: '4940200' }
  const answer = await call('POST', `${path}/1/test`, question)
  expect(answer.data<object>()).toEqual({
    outcome: 'decided',
    decision: { tags: question },
    reason: null,
    fallback: 'continue',
    ms: 1.5,
  })
  expect((await callAs('nova', 'POST', `${path}/1/test`, question)).status).toBe(404)
})

test('who may not write routes, or read calls, has no calls decided', async () => {
  const rig = await openWebhooks()
  const tryWith = async (...scopes: readonly string[]): Promise<number> => {
    const token = await rig.key({ name: scopes.join(), scopes })
    return (await rig.request(path, { token, method: 'POST', body: { url } })).status
  }
  expect(await tryWith('routes:*', 'cdrs:read')).toBe(403)
  expect(await tryWith('webhooks:*', 'cdrs:read')).toBe(403)
  expect(await tryWith('webhooks:*', 'routes:write')).toBe(403)
  expect(await tryWith('webhooks:*', 'routes:write', 'cdrs:read')).toBe(201)
})

test.each([{ carrier: 'acme' }, { set: 1 }])(
  'who may not write routes moves no webhook to %j, nor back by an undo',
  async (target) => {
    const { make, key, request } = await openWebhooks()
    await make({ tenant: 'acme' })
    const tryWith = async (method: string, at: string, body: object, scopes: readonly string[]) => {
      const token = await key({ name: scopes.join(), scopes })
      return request(at, { token, method, body })
    }
    const move = (...scopes: readonly string[]) =>
      tryWith('PATCH', `${path}/1`, target, ['webhooks:*', 'carriers:read', ...scopes])
    expect((await move('dispatcher:read', 'cdrs:read')).status).toBe(403)
    expect((await move('dispatcher:read', 'routes:write')).status).toBe(403)
    const moved = await move('dispatcher:read', 'routes:write', 'cdrs:read')
    expect(moved.status).toBe(200)
    const undo = `/api/v1/changes/${moved.headers.get('x-change-id') ?? ''}/undo`
    const undone = await tryWith('POST', undo, { reason: 'a mistake' }, ['webhooks:*', 'audit:*'])
    expect(undone.status).toBe(403)
  },
)

test('a carrier stays while a webhook is for its calls', async () => {
  const { make, call } = await openWebhooks()
  await make({ carrier: 'transit' })
  expect((await call('DELETE', '/api/v1/routing/carriers/3')).code).toBe('in_use')
  expect((await call('DELETE', `${path}/1`)).status).toBe(200)
  expect((await call('DELETE', '/api/v1/routing/carriers/3')).status).toBe(200)
})

test('question and answer are in the OpenAPI document', async () => {
  const { call } = await openWebhooks()
  const { webhooks, components } = (await call('GET', '/openapi.json')).body as {
    readonly webhooks: Readonly<Record<string, unknown>>
    readonly components: { readonly schemas: Readonly<Record<string, object>> }
  }
  expect(Object.keys(webhooks)).toEqual(['call.invite'])
  for (const name of ['CallQuestion', 'HookSource', 'InviteDecision'])
    expect(components.schemas).toHaveProperty(name)
})
