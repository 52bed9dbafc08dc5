/**
 * What a tenant's key may write: each field of each body in the OpenAPI document has a rule here, and is
 * tried with what belongs to others. A new field without a rule fails the test (GUIDE.md, "Who owns what").
 */
import { beforeAll, expect, test } from 'vitest'
import { documentOf } from '../support/documented.ts'
import { lookUp } from '../support/json-schema.ts'
import {
  CALL,
  CANARY,
  collectionOf,
  operations,
  plain,
  platform,
  type Body,
} from '../support/ownership-rules.ts'
import { openResources, type TestResources } from '../support/resources.ts'
import { readRows } from '../support/stored.ts'

type Json = Readonly<Record<string, unknown>>
interface Operation {
  readonly method: string
  readonly path: string
  readonly fields: readonly string[]
}

let world: TestResources
let documented: readonly Operation[]

beforeAll(async () => {
  world = await openResources()
  documented = bodiesOf(world)
  await fill(world)
})

test('every writable field of every operation has a rule', () => {
  const missing = documented.flatMap(({ method, path, fields }) => {
    const rules = operations[collectionOf(path)]?.rules ?? {}
    return fields.filter((field) => !(field in rules)).map((field) => `${method} ${path} ${field}`)
  })
  expect(missing).toEqual([])
  const known = new Set(documented.map(({ path }) => collectionOf(path)))
  expect(Object.keys(operations).filter((path) => !known.has(path))).toEqual([])
})

test("a tenant's key names nothing of others in any field, and is told nothing of them", async () => {
  const before = await stored(world)
  for (const { method, path, fields } of documented) {
    const { body, rules } = operations[collectionOf(path)] ?? { body: {}, rules: {} }
    for (const field of fields) {
      const rule = rules[field] ?? plain
      const attempts = rule === platform ? [{ [field]: sampleOf(field) }] : rule
      if (attempts === plain || typeof attempts === 'string') continue
      for (const attempt of attempts) {
        const sent = method === 'post' ? { ...body, ...attempt } : attempt
        const what = `${method} ${path} ${JSON.stringify(attempt)}`
        const answer = await world.callAs('own', method.toUpperCase(), pathOf(path), sent)
        const refusals = rule === platform ? [403] : [400, 403, 404, 409]
        expect([what, answer.status, refusals.includes(answer.status)]).toEqual([
          what,
          answer.status,
          true,
        ])
        // A name that was sent may come back.
        const told = answer.text.replaceAll(/(there is no |gateway of )[^}]*/g, '')
        expect([what, told.includes(CANARY)]).toEqual([what, false])
      }
    }
  }
  const after = await stored(world)
  expect(tables.filter((table) => after.get(table) !== before.get(table))).toEqual([])
})

test('the same bodies without what is of others are accepted', async () => {
  for (const [path, { body }] of Object.entries(operations)) {
    if (path.includes('{') || path.startsWith('/telephony/') || path.startsWith('/pbx/calls'))
      continue
    if (path === '/tenants' || path === '/guard/bans' || path === '/auth/password') continue
    const answer = await world.callAs('own', 'POST', `/api/v1${path}`, body)
    expect([path, answer.status, answer.text]).toEqual([path, 201, answer.text])
  }
})

test.each([
  ['203.0.113.0', 23],
  ['203.0.113.0', 8],
  ['2001:db8:7::', 47],
])("a tenant's key takes no network as large as %s/%i", async (host, netmask) => {
  const rig = await openResources()
  await rig.tenant('acme')
  const carrier = (mask: number) => ({ name: 'loop', gateways: [{ host, netmask: mask }] })
  const asAcme = (method: string, path: string, body: object) =>
    rig.callAs('acme', method, path, body)
  const refused = await asAcme('POST', '/routing/carriers', carrier(netmask))
  expect([refused.status, refused.body]).toMatchObject([
    403,
    { code: 'platform_only', details: [{ path: 'gateways.0.netmask' }] },
  ])
  expect((await asAcme('POST', '/routing/carriers', carrier(netmask < 24 ? 24 : 48))).status).toBe(
    201,
  )
  const { gateways } = carrier(netmask)
  expect((await asAcme('PATCH', '/routing/carriers/1', { gateways })).code).toBe('platform_only')
  // The platform may give it, and then it stays while the tenant changes the rest.
  expect((await rig.call('PATCH', '/routing/carriers/1', { gateways })).status).toBe(200)
  expect((await asAcme('PATCH', '/routing/carriers/1', { gateways, max_calls: 5 })).status).toBe(
    200,
  )
})

test.each([{ prefix: '' }, { strip: 3 }, { prepend: '1900' }])(
  "a tenant's key leads no emergency route elsewhere, to where no wallet is asked: %j",
  async (change) => {
    const rig = await openResources()
    await rig.tenant('acme')
    await rig.call('POST', '/routing/carriers', { name: 'loop', gateways: [{ host: '192.0.2.9' }] })
    const route = { name: 'sos', tenant: 'acme', carrier: 'loop', prefix: '112', emergency: true }
    const { id } = (await rig.call('POST', '/outbound-routes', route)).data<{ id: number }>()
    const refused = await rig.callAs('acme', 'PATCH', `/outbound-routes/${id}`, change)
    expect([refused.status, refused.code]).toEqual([403, 'platform_only'])
    const path = `/outbound-routes/${id}`
    expect((await rig.callAs('acme', 'PATCH', path, { priority: 5 })).status).toBe(200)
  },
)

test("the rates of another's plan are not imported into", async () => {
  for (const plan of [`${CANARY} plan`, `${CANARY} plan of the platform`]) {
    const answer = await world.request(
      `/api/v1/rates/import?rate_plan=${encodeURIComponent(plan)}`,
      {
        method: 'POST',
        token: await world.key({ tenant_scope: 'tenant', tenant_slug: 'own' }),
        headers: { 'content-type': 'text/csv' },
        body: 'prefix,rate_per_minute\n49,0',
      },
    )
    expect(answer.status).toBeGreaterThanOrEqual(400)
  }
})

/** Bodies of JSON that a key may send, with the paths of their leaves. */
function bodiesOf({ app }: TestResources): readonly Operation[] {
  const { document } = documentOf(app)
  const paths = document['paths'] as Record<string, Record<string, Json>>
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).flatMap(([method, operation]) => {
      const security = operation['security'] as readonly Json[]
      const isForKeys = security.some((scheme) => 'key' in scheme)
      const content = (operation['requestBody'] as Json | undefined)?.['content'] as
        Record<string, { readonly schema: Json }> | undefined
      const schema = content?.['application/json']?.schema
      // A node of the platform reports there: a tenant's key is refused (partition.test.ts).
      if (!isForKeys || schema === undefined || path.startsWith('/api/ocs')) return []
      const fields = [...new Set(leavesOf(schema, '', document))]
      const leaves = fields.filter(
        (field) => !fields.some((other) => other.startsWith(`${field}.`)),
      )
      return leaves.length === 0 || leaves[0] === '' ? [] : [{ method, path, fields: leaves }]
    }),
  )
}

function leavesOf(schema: Json, path: string, document: Json): string[] {
  if ('$ref' in schema) return leavesOf(lookUp(document, String(schema['$ref'])), path, document)
  const choices = (schema['anyOf'] ?? schema['oneOf'] ?? schema['allOf']) as Json[] | undefined
  if (choices) return choices.flatMap((choice) => leavesOf(choice, path, document))
  const properties = schema['properties'] as Record<string, Json> | undefined
  if (properties)
    return Object.entries(properties).flatMap(([name, child]) =>
      leavesOf(child, path === '' ? name : `${path}.${name}`, document),
    )
  const items = schema['items'] as Json | undefined
  return items ? leavesOf(items, path, document) : [path]
}

/** With the ids of the tenant's own rows: each is the third of its kind, after the canary's and the platform's. */
const pathOf = (path: string): string =>
  path
    .replace('{nodeId}', '3')
    .replace('{uuid}', ownKey)
    .replace(/\{id\}/, path.startsWith('/api/v1/users') ? '2' : idIn(path))

const idIn = (path: string): string => (/extensions|webhooks|tenants/.test(path) ? '2' : '3')

let ownKey = ''

const samples: Readonly<Record<string, unknown>> = {
  emergency: true,
  is_active: false,
  domains: ['own.example'],
  numbers: ['1'],
  duration_seconds: 60,
  media: 'bypass',
  media_profile: 'auto',
  codecs: null,
  dtmf: 'auto',
}

const sampleOf = (field: string): unknown => (field in samples ? samples[field] : 'x')

const tables = [
  'tenant',
  'tenant_domain',
  'tenant_number',
  'application_key',
  'user',
  'dispatcher_set',
  'dispatcher_node',
  'rate_plan',
  'rate',
  'customer',
  'customer_number',
  'wallet',
  'extension',
  'ledger_entry',
  'carrier',
  'carrier_gateway',
  'outbound_route',
  'inbound_route',
  'ai_agent',
  'webhook_endpoint',
]

async function stored({ store }: TestResources): Promise<ReadonlyMap<string, string>> {
  const found = new Map<string, string>()
  for (const table of tables)
    found.set(
      table,
      JSON.stringify(await readRows(store, `SELECT * FROM "${table}" ORDER BY 1, 2`)),
    )
  return found
}

/** One row of each kind for the canary, for the platform, and for the tenant whose key is tried. */
async function fill({ call, callAs, tenant: addTenant, engine }: TestResources): Promise<void> {
  await addTenant(CANARY, ['canary.example'])
  await addTenant('own', ['own.example'])
  const make = async (path: string, body: Body) => {
    const answer = await call('POST', `/api/v1${path}`, body)
    if (answer.status !== 201) throw new Error(`${path}: ${answer.text}`)
    return answer
  }
  const owners = [
    { slug: CANARY, of: `${CANARY} `, end: '', host: '10.1', number: '15559000001' },
    { slug: null, of: `${CANARY} `, end: ' of the platform', host: '10.2', number: '15559000002' },
    { slug: 'own', of: 'own ', end: '', host: '10.5', number: '15557000001' },
  ]
  await call('PATCH', '/api/v1/tenants/1', { numbers: ['15559', '1800'] })
  await call('PATCH', '/api/v1/tenants/2', { numbers: ['15557'] })
  for (const { slug, of, end, host, number } of owners) {
    const ofTenant = { tenant: slug }
    const name = (what: string) => `${of}${what}${end}`
    const set_id = owners.findIndex((each) => each.slug === slug) + 1
    const nodes = [{ host: `${host}.0.1` }]
    await make('/dispatcher', {
      ...ofTenant,
      endpoint_name: name('set'),
      algorithm: 8,
      set_id,
      nodes,
    })
    await make('/rate-plans', { ...ofTenant, name: name('plan') })
    await make('/rates', { rate_plan: name('plan'), prefix: '1', rate_per_minute: 1 })
    await make('/customers', {
      ...ofTenant,
      name: name('customer'),
      rate_plan: name('plan'),
      numbers: [number],
    })
    const gateways = [
      slug === null ? { host: `${host}.9.0`, netmask: 24 } : { host: `${host}.0.9` },
      ...(slug === CANARY ? [{ host: 'sip.canary.example' }] : []),
    ]
    await make('/routing/carriers', { ...ofTenant, name: name('carrier'), gateways })
    await make('/outbound-routes', { ...ofTenant, name: name('route'), carrier: name('carrier') })
    await make('/inbound-routes', { ...ofTenant, name: name('route'), set: name('set') })
    const agent = { name: name('agent'), extension: '700', sip_uri: `sip:bot@${host}.0.77` }
    await make('/telephony/ai-agents', { ...ofTenant, ...agent })
    if (slug === null) continue
    await make('/webhooks', { ...ofTenant, url: `https://${slug}.example/` })
    for (const extension of slug === 'own' ? ['101'] : ['199'])
      await make('/pbx/extensions', {
        ...ofTenant,
        extension,
        password: 'a password',
        display_name: name('phone'),
      })
    await make('/users', {
      username: slug,
      password: 'correct horse',
      role: 'auditor',
      tenant_slug: slug,
    })
  }
  engine.activeCalls = [
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
      setId: 1,
      node: null,
      carrier: null,
      stampOffsetMs: 0,
      instance: 'sbc-1',
      peers: { caller: CANARY, callee: null },
    },
  ]
  const made = await callAs('own', 'POST', '/api/v1/application-keys', { name: 'own key' })
  ownKey = made.data<{ uuid: string }>().uuid
}
