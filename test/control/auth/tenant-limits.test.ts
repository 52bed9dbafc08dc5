/**
 * The number of things that cost the engine work, which one tenant may make, and is shared by all.
 */
import { expect, test } from 'vitest'
import { isOnPostgres } from '../../support/on-sqlite.ts'
import { openResources } from '../../support/resources.ts'
import { readRow, runSql } from '../../support/stored.ts'

const hosts = (count: number, network: string) =>
  Array.from({ length: count }, (_, n) => ({ host: `10.${network}.${n}` }))

async function opened() {
  const rig = await openResources()
  await rig.tenant('acme', ['acme.example'])
  await rig.tenant('other')
  await rig.call('PATCH', '/tenants/1', { numbers: ['49'] })
  return rig
}

test("a tenant's key makes 300 nodes at most, and the platform may give more", async () => {
  const { call, callAs } = await opened()
  const set = (n: number, count: number) => ({
    endpoint_name: `pbx${n}`,
    algorithm: 8,
    nodes: hosts(count, `1.${n}`),
  })
  for (const n of [1, 2])
    expect((await callAs('acme', 'POST', '/dispatcher', set(n, 100))).status).toBe(201)
  expect((await callAs('acme', 'POST', '/dispatcher', set(3, 99))).status).toBe(201)
  const add = (host: string) => callAs('acme', 'POST', '/dispatcher/3/nodes', { host })
  expect((await add('10.2.0.1')).status).toBe(201)
  const tooMany = await callAs('acme', 'POST', '/dispatcher', set(4, 1))
  expect([tooMany.status, tooMany.code]).toEqual([409, 'too_many_nodes'])
  expect((await callAs('other', 'POST', '/dispatcher', set(5, 1))).status).toBe(201)
  const given = await call('POST', '/dispatcher', { ...set(6, 1), tenant: 'acme' })
  expect(given.status).toBe(201)
  // The rows that exist may be changed, and made fewer.
  const { id } = given.data<{ id: number }>()
  expect((await callAs('acme', 'PATCH', `/dispatcher/${id}`, { algorithm: 4 })).status).toBe(200)
  const more = { nodes: hosts(2, '1.6') }
  expect((await callAs('acme', 'PATCH', `/dispatcher/${id}`, more)).code).toBe('too_many_nodes')
})

test("a tenant's key makes 100 sets at most, so that the ids last for all", async () => {
  const { callAs } = await opened()
  const set = (n: number) => ({ endpoint_name: `pbx${n}`, algorithm: 8, nodes: hosts(1, `3.${n}`) })
  for (let n = 0; n < 100; n += 1)
    expect((await callAs('acme', 'POST', '/dispatcher', set(n))).status).toBe(201)
  expect((await callAs('acme', 'POST', '/dispatcher', set(100))).code).toBe('too_many_sets')
  expect((await callAs('other', 'POST', '/dispatcher', set(101))).status).toBe(201)
})

test("a tenant's key makes 300 gateways at most", async () => {
  const { callAs } = await opened()
  const carrier = (n: number, count: number) => ({
    name: `c${n}`,
    gateways: hosts(count, `4.${n}`),
  })
  for (let n = 0; n < 10; n += 1)
    expect((await callAs('acme', 'POST', '/routing/carriers', carrier(n, 30))).status).toBe(201)
  expect((await callAs('acme', 'POST', '/routing/carriers', carrier(10, 1))).code).toBe(
    'too_many_gateways',
  )
  expect((await callAs('other', 'POST', '/routing/carriers', carrier(11, 1))).status).toBe(201)
})

const phone = (extension: string) => ({
  extension,
  display_name: extension,
  password: 'long enough',
})

/**
 * The number that a tenant may have of each, the columns that no two rows share, and the body of
 * one.
 */
const resources: readonly [
  kind: string,
  most: number,
  path: string,
  table: string,
  unique: readonly string[],
  body: (name: string) => object,
][] = [
  [
    'carriers',
    100,
    '/routing/carriers',
    'carrier',
    ['name'],
    (name) => ({ name, gateways: hosts(1, `9.${name.slice(1)}`) }),
  ],
  [
    'agents',
    1_000,
    '/telephony/ai-agents',
    'ai_agent',
    ['name', 'extension'],
    (name) => ({ name, extension: name.slice(1), sip_uri: 'sip:a@203.0.113.9' }),
  ],
  [
    'inbound_routes',
    5_000,
    '/inbound-routes',
    'inbound_route',
    ['name'],
    (name) => ({ name, prefix: '49', extension: '900' }),
  ],
  [
    'outbound_routes',
    1_000,
    '/outbound-routes',
    'outbound_route',
    ['name'],
    (name) => ({ name, prefix: '49', mode: 'block' }),
  ],
  ['extensions', 20_000, '/pbx/extensions', 'extension', ['extension'], (n) => phone(n.slice(1))],
  ['customers', 20_000, '/customers', 'customer', ['name'], (name) => ({ name })],
  [
    'numbers',
    100_000,
    '/numbers',
    'phone_number',
    ['number', 'first_number', 'last_number'],
    (name) => ({ number: `+49${name.slice(1)}00` }),
  ],
  ['rate_plans', 200, '/rate-plans', 'rate_plan', ['name'], (name) => ({ name })],
  [
    'keys',
    1_000,
    '/application-keys',
    'application_key',
    ['name', 'uuid', 'key_hash'],
    (name) => ({ name, scopes: ['agents:read'] }),
  ],
  [
    'users',
    1_000,
    '/users',
    '"user"',
    ['username'],
    (username) => ({ username, password: 'long enough to be one', role: 'auditor' }),
  ],
]

/** As the platform names the tenant of what it makes, where that is not `tenant`. */
const ownerOf: Readonly<Record<string, object>> = {
  keys: { tenant_scope: 'tenant', tenant_slug: 'acme' },
  users: { tenant_slug: 'acme' },
}

test.each(resources)(
  "a tenant's key makes a bounded number of %s, and the platform may give more",
  async (kind, most, path, table, unique, body) => {
    const { call, callAs, store } = await opened()
    expect((await callAs('acme', 'POST', '/pbx/extensions', phone('900'))).status).toBe(201)
    expect((await callAs('acme', 'POST', path, body('n101'))).status).toBe(201)
    const last = `SELECT * FROM ${table} WHERE tenant_id = 1 ORDER BY id DESC LIMIT 1`
    const { id, ...row } = (await readRow(store, last)) ?? {}
    const columns = Object.keys(row)
    const fresh = (name: string): string =>
      name === 'key_hash'
        ? `CAST('${'z'.repeat(26)}' || (100000 + n) AS ${isOnPostgres ? 'bytea' : 'BLOB'})`
        : `'z' || n`
    const values = columns.map((name) => (unique.includes(name) ? fresh(name) : `t.${name}`))
    await runSql(
      store,
      `WITH RECURSIVE many (n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM many WHERE n < ${most})
       INSERT INTO ${table} (${columns.join(', ')})
       SELECT ${values.join(', ')} FROM ${table} t, many WHERE t.id = ${Number(id)}`,
    )
    const tooMany = await callAs('acme', 'POST', path, body('n102'))
    expect([tooMany.status, tooMany.code]).toEqual([409, `too_many_${kind}`])
    const owner = ownerOf[kind] ?? { tenant: 'acme' }
    expect((await call('POST', path, { ...body('n103'), ...owner })).status).toBe(201)
  },
)

test('the webhook endpoints of one tenant leave room for those of the others', async () => {
  const { callAs, store } = await opened()
  const url = 'https://hooks.example/'
  expect((await callAs('acme', 'POST', '/webhooks', { url })).status).toBe(201)
  await runSql(
    store,
    `WITH RECURSIVE many (n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM many WHERE n < 200)
     INSERT INTO webhook_endpoint (tenant_id, url, events, secret, is_active, created_at, updated_at)
     SELECT 1, 'https://a.example/', '["*"]', '', 0, 0, 0 FROM many`,
  )
  expect((await callAs('acme', 'POST', '/webhooks', { url })).code).toBe('too_many_endpoints')
  expect((await callAs('other', 'POST', '/webhooks', { url })).status).toBe(201)
})
