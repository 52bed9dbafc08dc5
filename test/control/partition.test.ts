import { expect, test } from 'vitest'
import { routeNotes } from '../../control/http/validate.ts'
import { openControl, type TestControl } from '../support/control.ts'
import { readRows, runSql } from '../support/stored.ts'

/** Part of every text of the tenant that no other tenant may see. */
const CANARY = 'canary'
const CALL = '6f9619ff-8b86-4d01-b42d-00cf4fc964ff'

/** What another tenant owns, by the path under which it is found. */
async function fill(
  control: TestControl,
): Promise<ReadonlyMap<string, readonly (string | number)[]>> {
  await control.tenant(CANARY, [`${CANARY}.example`])
  const token = await control.key({ name: 'root' })
  const ids = new Map<string, (string | number)[]>()
  const make = async (path: string, body: object) => {
    const answer = await control.request(`/api/v1${path}`, { token, body })
    if (answer.status !== 201) throw new Error(`${path}: ${answer.text}`)
    type Made = {
      id?: number
      uuid?: string
      nodes?: { id: number }[]
      guard?: { guard_id: string }
    }
    // Extensions are answered without an envelope.
    const made = answer.data<Made | undefined>() ?? (answer.body as Made)
    const nodes = made.nodes?.map(({ id }) => id) ?? []
    ids.set(path, [made.guard?.guard_id ?? made.uuid ?? made.id ?? 0, ...nodes])
  }
  const name = CANARY
  const tenant = { tenant: CANARY }
  const ofTenant = { tenant_scope: 'tenant', tenant_slug: CANARY }
  await make('/application-keys', { name, ...ofTenant })
  await make('/users', {
    username: CANARY,
    password: 'correct horse',
    role: 'auditor',
    tenant_slug: CANARY,
  })
  await make('/dispatcher', {
    ...tenant,
    endpoint_name: CANARY,
    algorithm: 8,
    set_id: 7,
    nodes: [{ host: `${CANARY}.example` }, { host: '10.0.0.1' }],
  })
  await make('/rate-plans', { name, ...tenant })
  await make('/rates', { rate_plan: CANARY, prefix: '49', rate_per_minute: 1, description: CANARY })
  await make('/customers', { name, ...tenant, numbers: [CANARY], rate_plan: CANARY, balance: '10' })
  const block = { prefix: '19', action: 'block', reason: CANARY }
  await make('/spend-guards', { customer: CANARY, ...block })
  await make('/routing/carriers', { name, ...tenant, gateways: [{ host: '10.0.0.9' }] })
  await make('/outbound-routes', { name, ...tenant, carrier: CANARY })
  await make('/inbound-routes', { name, ...tenant, set_id: 7 })
  const phone = { extension: '100', password: 'a password', display_name: CANARY, ...tenant }
  await make('/pbx/extensions', phone)
  await make('/telephony/ai-agents', {
    name,
    extension: '700',
    sip_uri: `sip:${CANARY}@10.0.0.8`,
    ...tenant,
  })
  const proposal = await control.request('/api/v1/mcp/tools/propose_change', {
    token,
    headers: { 'X-Tenant-Slug': CANARY },
    body: { tool: 'revoke_sbc_api_key', arguments: { identifier: CANARY }, reason: CANARY },
  })
  ids.set('/proposals', [proposal.data<{ proposal_id: string }>().proposal_id])
  ids.set('/tenants', [1])
  control.engine.activeCalls = [
    {
      callUuid: CALL,
      state: 'ACTIVE',
      direction: 'inbound',
      callerNumber: CANARY,
      calledNumber: CANARY,
      startedAt: 0,
      answeredAt: 0,
      tenantId: 1,
      customerId: 1,
      setId: 7,
      node: null,
      carrier: null,
      stampOffsetMs: 0,
      instance: 'sbc-1',
      peers: { caller: CANARY, callee: null },
    },
  ]
  ids.set('/pbx/calls', [CALL])
  ids.set('/calls', [CALL])
  control.engine.trace = () =>
    Promise.resolve({ tenantId: 1, legs: [CANARY], peers: [], entries: [], isComplete: true })
  // Without an owner, like the next.
  ids.set('/guard/bans', ['192.0.2.77'])
  ids.set('/docs', ['no-such-file'])
  // Pages and files without data.
  ids.set('/console', ['calls', 'no-such-call'])
  ids.set('/console/assets', ['no-such-file'])
  // Descriptions of tools have no data; what tools show and change is in tools/partition.test.ts.
  ids.set('/mcp/tools', ['no_such_tool'])
  await make('/webhooks', { url: `https://${CANARY}.example/`, ...tenant })
  ids.set('/webhooks', [...(ids.get('/webhooks') ?? []), 1])
  const suspended = await control.request(
    `/api/v1/application-keys/${ids.get('/application-keys')?.[0]}/suspend`,
    { token, headers: { 'X-Tenant-Slug': CANARY }, body: { reason: `${CANARY} leaked` } },
  )
  ids.set('/changes', [suspended.data<{ change_id: string }>().change_id])
  // Alerts are seen by global credentials only.
  ids.set('/billing/alerts', [1])
  return ids
}

/** Of routes that would otherwise refuse the body alone. */
const bodies = new Map<string, object>([
  ['/state', { state: 'inactive' }],
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

const tables = [
  'tenant',
  'tenant_domain',
  'application_key',
  'user',
  'dispatcher_set',
  'dispatcher_node',
  'rate_plan',
  'rate',
  'customer',
  'customer_number',
  'wallet',
  'ledger_entry',
  'carrier',
  'carrier_gateway',
  'outbound_route',
  'inbound_route',
  'webhook_endpoint',
  'extension',
  'ai_agent',
  'change_proposal',
  'spend_guard',
]

async function stored({ store }: TestControl): Promise<string> {
  const found: unknown[] = []
  for (const table of tables)
    found.push(await readRows(store, `SELECT * FROM "${table}" ORDER BY 1, 2`))
  return JSON.stringify(found)
}

test('a key of another tenant finds and changes nothing on any route', async () => {
  const control = await openControl()
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
    if (path.includes(':')) expect([400, 403, 404]).toContain(answer.status)
    else if (method === 'GET' && answer.status === 200 && path !== '/api/v1/audit')
      expect([name, totalOf(answer.body)]).toEqual([name, ownRows.get(path) ?? 0])
  }
  expect(await stored(control)).toBe(before)
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
  const control = await openControl()
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
  const control = await openControl()
  await fill(control)
  await control.tenant('other')
  const path = '/api/ocs/authorize?caller=canary&callee=4930'
  const foreign = await control.key({
    tenant_scope: 'tenant',
    tenant_slug: 'other',
    scopes: ['ocs'],
  })
  expect((await control.request(path, { token: foreign })).status).toBe(403)
  const node = await control.key({ scopes: ['ocs'] })
  expect((await control.request(path, { token: node })).status).toBe(200)
})

/** Under which paths a key of one domain of several has anything to do. */
const ofDomain =
  /\/(application-keys|pbx\/extensions|auth|health|mcp|originate|test-call|metrics\/(?:telemetry|failures))\b/

test("a key of one domain reaches nothing of its tenant's other domains, nor what they share", async () => {
  const control = await openControl()
  const ids = await fill(control)
  const { store, app } = control
  await runSql(store, "INSERT INTO tenant_domain (domain, tenant_id) VALUES ('own.example', 1)")
  const own = { tenant_scope: 'tenant', tenant_slug: CANARY, domain: 'own.example' }
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
  expect(await stored(control)).toBe(before)
})

test("a key of a tenant's only domain reads what is the tenant's, and changes nothing of it", async () => {
  const control = await openControl()
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
