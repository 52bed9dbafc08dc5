import { expect, test } from 'vitest'
import { routeNotes } from '../../control/http/validate.ts'
import { traced } from '../support/engine-views.ts'
import { fillOwned, stored } from '../support/owned-world.ts'
import { CALL, CANARY } from '../support/ownership-rules.ts'
import { openResources, type TestResources } from '../support/resources.ts'
import { runSql } from '../support/stored.ts'

/** The things of another tenant and of the platform, by the path under which they are found. */
async function fill(
  control: TestResources,
): Promise<ReadonlyMap<string, readonly (string | number)[]>> {
  await fillOwned(control)
  const token = await control.key({ name: 'root' })
  const first = [1, 1]
  const rows = ['/dispatcher', '/rate-plans', '/rates', '/customers', '/routing/carriers']
  const others = ['/outbound-routes', '/inbound-routes', '/telephony/ai-agents', '/pbx/extensions']
  const more = ['/numbers', '/users', '/tenants', '/webhooks', '/routing-webhooks', '/stir/keys']
  const alerts = ['/alert-channels', '/alert-rules']
  const people = ['/identity-providers']
  const ids = new Map<string, readonly (string | number)[]>(
    [...rows, ...others, ...more, ...alerts, ...people].map((path) => [path, first]),
  )
  const asCanary = (path: string, body: object) =>
    control.request(`/api/v1${path}`, { token, headers: { 'X-Tenant-Slug': CANARY }, body })
  const guard = { customer: 1, prefix: '19', action: 'block', reason: CANARY }
  const guarded = await asCanary('/spend-guards', guard)
  ids.set('/spend-guards', [guarded.data<{ guard: { guard_id: string } }>().guard.guard_id])
  const key = await asCanary('/application-keys', { name: CANARY })
  const { uuid } = key.data<{ uuid: string }>()
  ids.set('/application-keys', [uuid])
  const revoke = { tool: 'revoke_sbc_api_key', arguments: { identifier: CANARY }, reason: CANARY }
  const proposal = await asCanary('/mcp/tools/propose_change', revoke)
  ids.set('/proposals', [proposal.data<{ proposal_id: string }>().proposal_id])
  const suspend = `/application-keys/${uuid}/suspend`
  const suspended = await asCanary(suspend, { reason: `${CANARY} leaked` })
  ids.set('/changes', [suspended.data<{ change_id: string }>().change_id])
  await runSql(
    control.store,
    `INSERT INTO rate_deck (rate_plan_id, file_name, mode, lines, imported, created, updated,
      removed, imported_by, imported_at) VALUES (1, '${CANARY}', 'merge', 1, 1, 1, 0, 0,
      '${CANARY}', 1)`,
  )
  await runSql(
    control.store,
    `INSERT INTO rerating (ref, tenant_id, kind, rate_plan_id, rate_plan, currency, from_at,
      before_at, prefix, state, position_at, position_id, total, started_by, started_at)
      VALUES ('${CANARY}', 1, 'bought', 1, '${CANARY}', 'USD', 0, 1, '', 'done', 0, 0, 0,
      '${CANARY}', 1)`,
  )
  await runSql(
    control.store,
    `INSERT INTO alert (key, rule_id, rule, tenant_id, kind, subject, severity, state, text, figures,
      path, events, began_at, due_at) VALUES ('${CANARY}', 1, '${CANARY}', 1, 'node_down',
      '${CANARY}', 'info', 'open', '${CANARY}', '{}', '/', 1, 0, 0)`,
  )
  ids.set('/alerts', [1])
  await runSql(
    control.store,
    `INSERT INTO finding (tenant_id, identity, kind, severity, subject, details, first_at,
      last_at, opened_at) VALUES (1, '${CANARY}', 'node', 'high', 'node ${CANARY}',
      '{"what":"${CANARY}","advice":"","figures":{},"evidence":[],"next":{"tool":"t",
        "arguments":{}},"first_step":null,"seen_since":false}', 1, 1, 1)`,
  )
  ids.set('/findings', [1])
  ids.set('/rates/decks', first)
  ids.set('/rates/reratings', first)
  ids.set('/pbx/calls', [CALL])
  ids.set('/calls', [CALL])
  control.engine.trace = () => Promise.resolve(traced({ tenantId: 1, legs: [CANARY] }))
  // Without an owner, like the next.
  ids.set('/guard/bans', ['192.0.2.77'])
  ids.set('/docs', ['no-such-file'])
  // Pages and files without data.
  ids.set('/console', ['calls', 'no-such-call'])
  ids.set('/console/assets', ['no-such-file'])
  // Descriptions of tools have no data; what tools show and change is in agents/partition.test.ts.
  ids.set('/mcp/tools', ['no_such_tool'])
  ids.set('/stir/authorities', first)
  // Of users; test/control/resources/saved-views.test.ts.
  ids.set('/saved-views', ['calls', 'no-such-view'])
  ids.set('/auth/providers', ['no-such-provider'])
  // It sends each browser back into the console.
  ids.set('/auth/callback', ['no-such-provider'])
  // A key has none.
  ids.set('/auth/sessions', ['no-such-session'])
  // Open to all.
  ids.set('/stir/certificates', ['no-such-file'])
  // Alerts are seen by global credentials only.
  ids.set('/billing/alerts', [1])
  return ids
}

/** Bodies for routes that would otherwise refuse the body alone. */
const bodies = new Map<string, object>([
  ['/state', { state: 'inactive' }],
  ['/test', { from: '1', to: '2' }],
  ['/snooze', { duration: 60, reason: 'to try it' }],
  ...['/suspend', '/resume', '/undo'].map((path) => [path, { reason: 'to try it' }] as const),
])

/** `/api/v1/dispatcher/:id/nodes/:nodeId` with the ids of the other tenant's rows. */
function pathTo(path: string, ids: ReadonlyMap<string, readonly (string | number)[]>): string {
  if (!path.includes(':')) return path
  const collection = path.slice(0, path.indexOf('/:')).replace('/api/v1', '')
  const values = [...(ids.get(collection) ?? [])]
  return path.replaceAll(/:\w+/g, () => {
    const value = values.shift()
    if (value === undefined) throw new Error(`add a row of another tenant for ${path}`)
    return String(value)
  })
}

test('a key of another tenant finds and changes nothing on any route', async () => {
  const control = await openResources()
  const ids = await fill(control)
  await control.tenant('other', ['other.example'])
  const token = await control.key({ name: 'foreign', tenant_scope: 'tenant', tenant_slug: 'other' })
  await control.access.tick()
  const before = await stored(control)

  for (const { method, path } of routeNotes(control.app)) {
    const name = `${method} ${path}`
    const hasBody = method !== 'GET' && method !== 'DELETE'
    const body = bodies.get(path.slice(path.lastIndexOf('/'))) ?? {}
    const answer = await control.request(pathTo(path, ids), {
      token,
      method,
      ...(hasBody && { body }),
    })
    expect([name, answer.text.includes(CANARY)]).toEqual([name, false])
    if (isDescription(method, path)) continue
    if (path === '/api/v1/auth/callback/:id') expect(answer.status).toBe(302)
    else if (path.includes(':')) expect([400, 403, 404]).toContain(answer.status)
    else if (method === 'GET' && answer.status === 200 && path !== '/api/v1/audit')
      expect([name, totalOf(answer.body)]).toEqual([name, ownRows.get(path) ?? 0])
  }
  expect(await stored(control)).toEqual(before)
})

/** The schemas of a tool: the same for all. */
const isDescription = (method: string, path: string): boolean =>
  method === 'GET' && path === '/api/v1/mcp/tools/:name'

/** Itself and its key. */
const ownRows = new Map([
  ['/api/v1/tenants', 1],
  ['/api/v1/application-keys', 1],
])

/** Lists of a tenant that owns nothing are empty; what is no list counts as nothing. */
function totalOf(body: unknown): number {
  const { meta, data } = Object(body) as { meta?: { total: number }; data?: unknown }
  if (meta === undefined) return 0
  return Array.isArray(data) && data.length === meta.total ? meta.total : -1
}

test('a global key that names a tenant acts as that tenant would', async () => {
  const control = await openResources()
  await fill(control)
  await control.tenant('other')
  const token = await control.key({ name: 'global' })
  for (const path of ['/dispatcher', '/customers', '/rate-plans', '/rates', '/routing/carriers']) {
    const total = async (slug: string) => {
      const headers = { 'X-Tenant-Slug': slug }
      return totalOf((await control.request(path, { token, headers })).body)
    }
    expect([path, await total(CANARY), await total('other')]).toEqual([path, 1, 0])
  }
})

test("a tenant's key charges no calls: a node speaks for all tenants", async () => {
  const control = await openResources()
  await fill(control)
  await control.tenant('other')
  const path = '/api/ocs/authorize?caller=15559000001&callee=1800'
  const foreign = await control.key({ tenant_slug: 'other', scopes: ['ocs'] })
  expect((await control.request(path, { token: foreign })).status).toBe(403)
  const node = await control.key({ scopes: ['ocs'] })
  expect((await control.request(path, { token: node })).code).toBe('insufficient_funds')
})

/** Under which paths a key of one domain of several has anything to do. */
const ofDomain =
  /\/(application-keys|pbx\/extensions|auth|health|mcp|originate|test-call|metrics\/(?:telemetry|failures))\b/

test("a key of one domain reaches nothing of its tenant's other domains, nor what they share", async () => {
  const control = await openResources()
  const ids = await fill(control)
  const { store, app } = control
  await runSql(store, "INSERT INTO tenant_domain (domain, tenant_id) VALUES ('second.example', 1)")
  const own = { tenant_scope: 'tenant', tenant_slug: CANARY, domain: 'second.example' }
  const token = await control.key(own)
  await control.access.tick()
  const before = await stored(control)
  for (const { method, path, access } of routeNotes(app)) {
    if (access?.kind !== 'scope' || path === '/mcp') continue
    const body = bodies.get(path.slice(path.lastIndexOf('/'))) ?? {}
    const hasBody = method !== 'GET' && method !== 'DELETE'
    const answer = await control.request(pathTo(path, ids), {
      token,
      method,
      ...(hasBody && { body }),
    })
    const name = `${method} ${path}`
    if (!ofDomain.test(path)) expect([name, answer.status]).toEqual([name, 403])
    else if (path.includes(':') && !isDescription(method, path))
      expect([name, answer.status]).not.toEqual([name, 200])
  }
  expect(await stored(control)).toEqual(before)
})

test("a key of a tenant's only domain reads what is the tenant's, and changes nothing of it", async () => {
  const control = await openResources()
  const ids = await fill(control)
  const domain = `${CANARY}.example`
  const token = await control.key({ tenant_scope: 'tenant', tenant_slug: CANARY, domain })
  const period = 'start_date=2026-01-01T00:00:00Z&end_date=2026-01-02T00:00:00Z'
  for (const path of ['/pbx/calls/active', `/reports/cdrs?${period}`, '/routing/carriers'])
    expect((await control.request(`/api/v1${path}`, { token })).status).toBe(200)
  const user = `/api/v1/users/${ids.get('/users')?.[0]}`
  const taken = await control.request(user, {
    token,
    method: 'PATCH',
    body: { password: 'taken over' },
  })
  expect([taken.status, taken.code]).toEqual([403, 'wrong_domain'])
})
