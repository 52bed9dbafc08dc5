/** A platform with one row of each kind for three owners, and the bodies that its API documents. */
import { activeCall } from './engine-views.ts'
import { lookUp } from './json-schema.ts'
import { CALL, CANARY, type Body } from './ownership-rules.ts'
import type { TestResources } from './resources.ts'
import { authorityPem, rfcKey } from './stir-fixtures.ts'
import { readRows } from './stored.ts'

type Json = Readonly<Record<string, unknown>>

/** A leaf of a body, and what it may be: any of these. */
type Leaves = ReadonlyMap<string, readonly Json[]>

interface Operation {
  readonly method: string
  readonly path: string
  readonly fields: Leaves
}

/** Bodies of JSON that a key may send, with the paths of their leaves. */
export function bodiesOf(document: Json): readonly Operation[] {
  const paths = document['paths'] as Record<string, Record<string, Json>>
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).flatMap(([method, operation]) => {
      const security = operation['security'] as readonly Json[]
      const isForKeys = security.some((scheme) => 'key' in scheme)
      const content = (operation['requestBody'] as Json | undefined)?.['content'] as
        Record<string, { readonly schema: Json }> | undefined
      const schema = content?.['application/json']?.schema
      // A node of the platform reports there: a tenant's key is refused
      // (test/control/partition.test.ts).
      if (!isForKeys || schema === undefined || path.startsWith('/api/ocs')) return []
      const all = leavesOf(schema, '', document)
      const isWhole = (field: string) => all.some(([other]) => other.startsWith(`${field}.`))
      const fields = new Map<string, Json[]>()
      for (const [field, each] of all.filter(([name]) => !isWhole(name)))
        fields.set(field, [...(fields.get(field) ?? []), each])
      return fields.size === 0 || fields.has('') ? [] : [{ method, path, fields }]
    }),
  )
}

function leavesOf(schema: Json, path: string, document: Json): [path: string, schema: Json][] {
  if ('$ref' in schema) return leavesOf(lookUp(document, String(schema['$ref'])), path, document)
  const choices = (schema['anyOf'] ?? schema['oneOf'] ?? schema['allOf']) as Json[] | undefined
  if (choices) return choices.flatMap((choice) => leavesOf(choice, path, document))
  const properties = schema['properties'] as Record<string, Json> | undefined
  if (properties)
    return Object.entries(properties).flatMap(([name, child]) =>
      leavesOf(child, path === '' ? name : `${path}.${name}`, document),
    )
  const items = schema['items'] as Json | undefined
  const inner = items ? leavesOf(items, path, document) : []
  // A list of texts or numbers is one leaf.
  return inner.some(([each]) => each !== path) ? inner : [[path, schema]]
}

/**
 * The address of the tenant's own row: each is the third of its kind, after the canary's and the
 * platform's. Each of them has a number and a block.
 */
export const ownPath = (path: string, ownKey: string): string =>
  path
    .replace('{nodeId}', '3')
    .replace('{screen}', 'calls')
    .replace('{uuid}', ownKey)
    .replace('{id}', idOf(path))

function idOf(path: string): string {
  if (path.includes('/numbers/')) return '5'
  return /users|extensions|webhooks|tenants/.test(path) ? '2' : '3'
}

/**
 * One row of each kind for the canary, for the platform, and for the tenant whose key is tried; the
 * key's uuid.
 */
export async function fillOwned({
  call,
  callAs,
  tenant: addTenant,
  engine,
}: TestResources): Promise<{ readonly ownKey: string }> {
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
  await call('PATCH', '/api/v1/tenants/1', { numbers: ['15559', '1800', '155578'] })
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
    const block = {
      number: `${number.slice(0, 5)}${set_id}00000`,
      last_number: `${number.slice(0, 5)}${set_id}00099`,
    }
    await make('/numbers', {
      ...ofTenant,
      ...block,
      agent: agent.name,
      display_name: name('block'),
    })
    await make('/routing-webhooks', { ...ofTenant, url: `https://${slug ?? CANARY}.example/` })
    const key = { name: name('key'), private_key: rfcKey, x5u: `https://${of.trim()}.example/` }
    await make('/stir/keys', { ...ofTenant, ...key })
    await make('/identity-providers', {
      ...ofTenant,
      name: name('login'),
      issuer: `https://${of.trim()}.example`,
      client_id: name('client'),
      role_mappings: [{ value: name('group'), role: 'auditor' }],
      // That of the platform would be offered to everybody.
      is_enabled: slug !== null,
    })
    await make('/stir/authorities', { name: name('authority'), certificate: authorityPem })
    const slack = { kind: 'slack', secret: `https://${slug ?? CANARY}.example/hook` }
    await make('/alert-channels', { ...ofTenant, ...slack, name: name('channel') })
    const rule = { name: name('alert rule'), on: 'node_down', channels: [name('channel')] }
    await make('/alert-rules', { ...ofTenant, ...rule })
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
    activeCall({
      callUuid: CALL,
      callerNumber: CANARY,
      calledNumber: CANARY,
      startedAt: 0,
      answeredAt: 0,
      tenantId: 1,
      customerId: 1,
      setId: 1,
      peers: { caller: CANARY, callee: null },
    }),
  ]
  const made = await callAs('own', 'POST', '/api/v1/application-keys', { name: 'own key' })
  return { ownKey: made.data<{ uuid: string }>().uuid }
}

const tables = [
  ...['tenant', 'tenant_domain', 'tenant_number', 'application_key', 'user', 'extension'],
  ...['dispatcher_set', 'dispatcher_node', 'rate_plan', 'rate', 'customer', 'phone_number'],
  ...['wallet', 'ledger_entry', 'carrier', 'carrier_gateway', 'outbound_route', 'inbound_route'],
  ...['webhook_endpoint', 'routing_webhook', 'ai_agent', 'change_proposal', 'spend_guard'],
  ...['stir_key', 'stir_authority', 'alert_channel', 'alert_rule', 'alert_rule_channel'],
  ...['finding', 'finding_mark', 'identity_provider'],
]

/** All that tenants own, by its table. */
export async function stored({ store }: Pick<TestResources, 'store'>) {
  const found: Record<string, unknown> = {}
  for (const table of tables)
    found[table] = await readRows(store, `SELECT * FROM "${table}" ORDER BY 1, 2`)
  return found
}
