/**
 * The rules that no schema has for a body: fields that depend on others, on what is stored, or on
 * how SIP reads them.
 */
import { beforeAll, expect, test } from 'vitest'
import { fillOwned } from '../../support/owned-world.ts'
import { operations } from '../../support/ownership-rules.ts'
import { startOfTime } from '../../support/control.ts'
import { openResources, type TestResources } from '../../support/resources.ts'

let world: TestResources

beforeAll(async () => {
  world = await openResources()
  await fillOwned(world)
})

const adjust = '/customers/1/wallet/adjust'
const set = (node: object) => ({ nodes: [{ host: '10.3.0.1', ...node }] })
const gateway = (change: object) => ({ gateways: [{ host: '10.4.0.1', ...change }] })
const digest = (change: object) => ({
  auth: { type: 'digest', username: 'acme', password: 'secret', ...change },
})
const at = (ms: number) => new Date(startOfTime + ms).toISOString()
const header = (name: string) => ({ strip_headers: [name] })

/** The collection, what is wrong in a body that is accepted without it, and where that is. */
const refused: readonly [collection: string, change: object, path: string][] = [
  ['/tenants', { slug: 'Acme' }, 'slug'],
  ['/tenants', { slug: '-a' }, 'slug'],
  ['/tenants', { slug: "a' --" }, 'slug'],
  ['/tenants', { domains: ['a.example', 'A.example'] }, 'domains'],
  ['/tenants', { domains: ['a b'] }, 'domains.0'],
  ['/tenants', { numbers: ['+1', '1'] }, 'numbers'],
  ['/users', { username: 'a b' }, 'username'],
  ['/users', { tenant_slug: 'unknown' }, 'tenant_slug'],
  ['/application-keys', { scopes: ['*:read', 'keys:own'] }, 'scopes.1'],
  ['/application-keys', { expires_at: at(-1) }, 'expires_at'],
  ['/application-keys', { tenant_scope: 'tenant' }, 'tenant_slug'],
  ['/application-keys', { tenant_scope: 'tenant', tenant_slug: 'no' }, 'tenant_slug'],
  ['/application-keys', { tenant_slug: 'own' }, 'tenant_slug'],
  ['/application-keys', { domain: 'own.example' }, 'domain'],
  [
    '/application-keys',
    { tenant_scope: 'tenant', tenant_slug: 'own', domain: 'canary.example' },
    'domain',
  ],
  ['/application-keys', { allowed_ips: ['10.0.0.0/33'] }, 'allowed_ips.0'],
  ['/dispatcher', { endpoint_name: 'a\r\nb' }, 'endpoint_name'],
  ['/dispatcher', { nodes: [{ host: '10.3.0.1' }, { host: '10.3.0.1' }] }, 'nodes.1.host'],
  ['/dispatcher', set({ host: '300.1.1.1' }), 'nodes.0.host'],
  ['/dispatcher', set({ host: '1.2.3' }), 'nodes.0.host'],
  ['/dispatcher', set({ host: '0.0.0.0' }), 'nodes.0.host'],
  ['/dispatcher', set({ host: '-a.example' }), 'nodes.0.host'],
  ['/dispatcher', set({ host: `${'a'.repeat(64)}.example` }), 'nodes.0.host'],
  ['/dispatcher', { probe: { interval_ms: 500, timeout_ms: 501 } }, 'probe.timeout_ms'],
  ['/dispatcher', { probe: { ok_codes: ['300-200'] } }, 'probe.ok_codes.0'],
  ['/dispatcher', { probe: { ok_codes: [199] } }, 'probe.ok_codes.0'],
  ['/dispatcher', { voicemail_uri: 'mailbox' }, 'voicemail_uri'],
  ['/dispatcher', { spy_uri: 'sip:spy@{node}' }, 'spy_uri'],
  ['/dispatcher', { spy_uri: 'sip:{call_uuid}@{host}' }, 'spy_uri'],
  ['/dispatcher', { spy_uri: 'http:{call_uuid}@{node}' }, 'spy_uri'],
  ['/routing/carriers', gateway({ host: '::' }), 'gateways.0.host'],
  ['/routing/carriers', gateway({ netmask: 33 }), 'gateways.0.netmask'],
  ['/routing/carriers', gateway({ netmask: 7 }), 'gateways.0.netmask'],
  ['/routing/carriers', gateway({ host: 'a.example', netmask: 24 }), 'gateways.0.netmask'],
  [
    '/routing/carriers',
    { gateways: [{ host: '1.1.1.1' }, { host: '1.1.1.1' }] },
    'gateways.1.host',
  ],
  ['/routing/carriers', { caller_id: { mode: 'fixed' } }, 'caller_id.value'],
  ['/routing/carriers', { caller_id: { mode: 'fixed', value: '1>\r\nX: y' } }, 'caller_id.value'],
  [
    '/routing/carriers',
    { number_rules: { in: [{ match: '(a+)+$', replace: '' }] } },
    'number_rules.in.0.match',
  ],
  ['/routing/carriers', { auth: { type: 'ip', expires: 60 } }, 'auth.expires'],
  ['/routing/carriers', digest({ username: undefined }), 'auth.username'],
  ['/routing/carriers', digest({ username: 'a"b' }), 'auth.username'],
  ['/routing/carriers', digest({ password: undefined }), 'auth.password'],
  ['/routing/carriers', digest({ type: 'register', password: null }), 'auth.password'],
  ['/routing/carriers', digest({ from_user: 'a b' }), 'auth.from_user'],
  ['/routing/carriers', digest({ from_domain: 'a>\r\nX: y' }), 'auth.from_domain'],
  ['/routing/carriers', digest({ type: 'register', expires: 59 }), 'auth.expires'],
  ['/routing/carriers', { codecs: ['mp3'] }, 'codecs.0'],
  ['/routing/carriers', { codecs: ['pcma', 'PCMA'] }, 'codecs'],
  ['/routing/carriers', header('From'), 'strip_headers.0'],
  ['/routing/carriers', header('content-type'), 'strip_headers.0'],
  ['/routing/carriers', header('P Asserted'), 'strip_headers.0'],
  // A row that is not found is named by the body's field.
  ['/routing/carriers', { inbound_set_id: 99 }, 'inbound_set_id'],
  ['/routing/carriers', { inbound_set: "x' OR 1=1 --" }, 'inbound_set'],
  ['/routing/carriers', { customer_id: 99 }, 'customer_id'],
  ['/outbound-routes', { carrier: undefined }, 'carrier'],
  ['/outbound-routes', { carrier: 'unknown' }, 'carrier'],
  ['/outbound-routes', { carrier: undefined, carrier_id: 99 }, 'carrier_id'],
  ['/outbound-routes', { prefix: 'abc' }, 'prefix'],
  ['/outbound-routes', { prepend: '0049;x' }, 'prepend'],
  ['/inbound-routes', { set: undefined }, 'set_id'],
  ['/inbound-routes', { set: undefined, set_id: 99 }, 'set_id'],
  ['/inbound-routes', { domain: 'a b' }, 'domain'],
  ['/pbx/extensions', { extension: '10+1' }, 'extension'],
  ['/pbx/extensions', { extension: '++10' }, 'extension'],
  ['/pbx/extensions', { domain: 'nowhere.example' }, 'domain'],
  ['/telephony/ai-agents', { extension: '7+1' }, 'extension'],
  ['/telephony/ai-agents', { sip_uri: 'bot@192.0.2.9' }, 'sip_uri'],
  ['/telephony/ai-agents', { sip_uri: 'sips:bot@192.0.2.9' }, 'sip_uri'],
  ['/telephony/ai-agents', { sip_uri: 'sip:bot@0.0.0.0' }, 'sip_uri'],
  ['/telephony/ai-agents', { sip_uri: 'sip:bot@192.0.2.9;transport=ws' }, 'sip_uri'],
  ['/telephony/ai-agents', { sip_uri: 'sip:bot@192.0.2.9>\r\nX: y' }, 'sip_uri'],
  ['/customers', { numbers: ['49/30'] }, 'numbers.0'],
  ['/customers', { numbers: ['1+(2)'] }, 'numbers.0'],
  ['/customers', { rate_plan: 'none' }, 'rate_plan'],
  ['/customers', { tenant: 'own', rate_plan: 'own plan', currency: 'EUR' }, 'currency'],
  ['/customers', { credit_limit: '1.0000001' }, 'credit_limit'],
  ['/customers', { max_daily_spend: '1e3' }, 'max_daily_spend'],
  ['/customers', { balance: '20000000000' }, 'balance'],
  [adjust, { amount: 0, reason: 'x' }, 'amount'],
  [adjust, { amount: '0.0000001', reason: 'x' }, 'amount'],
  [adjust, { amount: -1, reason: 'x', kind: 'topup' }, 'amount'],
  [adjust, { amount: 1, reason: '' }, 'reason'],
  ['/rates', { prefix: '49a' }, 'prefix'],
  ['/rates', { rate_per_minute: '1000000.000001' }, 'rate_per_minute'],
  ['/rates', { rate_per_minute: 0.1234567 }, 'rate_per_minute'],
  ['/rates', { connect_fee: '0,40' }, 'connect_fee'],
  ['/rates', { first_increment: 0, first_rate_per_minute: 2 }, 'first_rate_per_minute'],
  ['/rates', { effective_from: '2026-01' }, 'effective_from'],
  ['/rates', { effective_from: at(0), effective_to: at(0) }, 'effective_to'],
  ['/spend-guards', { customer: undefined }, 'customer'],
  ['/spend-guards', { tenant: 'own' }, 'customer'],
  ['/spend-guards', { prefix: '00' }, 'prefix'],
  ['/spend-guards', { amount: '1' }, 'amount'],
  ['/spend-guards', { per: 'day' }, 'per'],
  ['/spend-guards', { action: 'cap' }, 'amount'],
  ['/spend-guards', { action: 'cap', amount: '-1' }, 'amount'],
  ['/spend-guards', { customer: undefined, extension: '999' }, 'extension'],
  ['/pbx/calls/originate', { destination_number: 'sip:evil@host' }, 'destination_number'],
  ['/telephony/test-call', { to: 'sip:a@b' }, 'to'],
  ['/telephony/test-call', { max_seconds: 31 }, 'max_seconds'],
]

test.each(refused)('%s: %j is refused at %s', async (collection, change, path) => {
  const { body = {} } = operations[collection] ?? {}
  const answer = await world.call('POST', `/api/v1${collection}`, { ...body, ...change })
  expect(answer.body).toMatchObject({ statusCode: 400, details: [{ path }] })
})
