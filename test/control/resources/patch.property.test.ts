/**
 * PATCH of every resource against RFC 7396: what is absent stays, at any depth, and above all a
 * secret.
 */
import fc from 'fast-check'
import { beforeAll, expect, test } from 'vitest'
import { documentOf } from '../../support/documented.ts'
import { bodiesOf } from '../../support/owned-world.ts'
import '../../support/property-seed.ts'
import { openResources, type TestResources } from '../../support/resources.ts'
import {
  authorityPem,
  otherAuthorityPem,
  rfcCertificate,
  rfcKey,
  rfcKeyAsPkcs8,
} from '../../support/stir-fixtures.ts'
import { readRow } from '../../support/stored.ts'

type Json = Readonly<Record<string, unknown>>

interface Patched {
  /** The least body that makes one. */
  readonly least: Json
  /** The body with nothing but what is required; absent: `least`. */
  readonly bare?: Json
  /** Other values of every field that a change may have, as they are shown. */
  readonly other: Json
  /** A column that is stored and never shown. */
  readonly secret?: { readonly table: string; readonly column: string }
  /** Fields whose default follows from another field. */
  readonly following?: readonly string[]
}

const floors = { min_asr: 40, min_acd: 30, max_pdd_ms: 4_000, window: 60, min_calls: 7 }

const voice = { media: 'bypass', media_profile: 'auto', codecs: ['PCMA'], dtmf: 'auto' }
const url = 'https://hooks.example/a'

/** Rules about the caller, each as it is not by default. */
const callerRules = {
  ...{ present: 'default', allowed: 'list', numbers: ['4930'], otherwise: 'refuse' },
  ...{ forwarded: 'original', emergency_number: '+4930112' },
}

/** The patched resources, by the path of the collection. */
const resources: Readonly<Record<string, Patched>> = {
  '/api/v1/users': {
    least: { username: 'ana', password: 'correct horse', role: 'auditor' },
    other: { role: 'operator', is_active: false, password: 'another horse' },
    secret: { table: '"user"', column: 'password_hash' },
  },
  '/api/v1/application-keys': {
    least: { name: 'a key' },
    other: {
      ...{ name: 'another key', description: 'for a test', scopes: ['cdrs:read'] },
      ...{ rate_limit_rpm: 7, expires_at: '2027-01-01T00:00:00.000Z', is_active: false },
      ...{ domain: null, allowed_ips: ['192.0.2.0/24'] },
    },
    secret: { table: 'application_key', column: 'key_hash' },
  },
  '/api/v1/dispatcher': {
    least: { endpoint_name: 'pbx', algorithm: 8, nodes: [{ host: '10.0.0.1' }] },
    other: {
      ...{ endpoint_name: 'pbx 2', algorithm: 4, nodes: [{ host: '10.0.0.2', weight: 50 }] },
      ...{ set_id: 77, voicemail_uri: 'sip:vm@10.0.0.9', spy_uri: 'sip:spy-{call_uuid}@10.0.0.9' },
      probe: {
        ...{ interval_ms: 3_000, timeout_ms: 2_000, fail_threshold: 4, recover_threshold: 5 },
        ok_codes: ['200', '4xx'],
      },
      caller_identity: callerRules,
      ...voice,
    },
    following: ['set_id'],
  },
  '/api/v1/dispatcher/{id}/nodes': {
    least: { host: '10.0.0.3' },
    other: {
      ...{ host: '10.0.0.4', internal_port: 5070, external_port: 5090, weight: 7, priority: 8 },
      ...{ description: 'second', transport: 'tcp', is_enabled: false, max_calls: 9 },
    },
  },
  '/api/v1/tenants': {
    least: { slug: 'nova' },
    other: {
      ...{ slug: 'novo', name: 'Novo', is_active: false, domains: ['novo.example'] },
      ...{ numbers: ['4930'], time_zone: 'Europe/Berlin', ...voice },
    },
    following: ['name'],
  },
  '/api/v1/outbound-routes': {
    bare: { name: 'out', carrier: 'transit' },
    least: { name: 'out', carrier: 'transit', prefix: '49' },
    following: ['carrier', 'mode'],
    other: {
      ...{ name: 'out 2', prefix: '48', priority: 7, weight: 8, strip: 1, prepend: '00' },
      ...{ mode: 'block', is_active: false, emergency: true, customer: 'nova', carrier: 'transit' },
      ...{ loss_protection: 'strict', min_margin: '2.5%' },
      ...{ distribution: 'percent', quality: floors },
    },
  },
  '/api/v1/inbound-routes': {
    least: { name: 'in', set_id: 900 },
    other: {
      ...{ name: 'in 2', prefix: '49', priority: 7, is_active: false, domain: 'acme.example' },
      ...{ carrier: 'transit', set: 900, extension: '101', extension_domain: 'acme.example' },
      ...{ agent: 'bot', verification: 'failed' },
    },
    following: ['set_id'],
  },
  '/api/v1/numbers': {
    least: { number: '+4930700' },
    other: {
      ...{ number: '+4930800', last_number: '+4930809', customer: 'nova', is_active: false },
      ...{ set: 900, extension: '101', extension_domain: 'acme.example', agent: 'bot' },
      ...{ display_name: 'Front desk', emergency_address: 'A-17', attestation: 'B' },
      ...{ verified_since: '2026-01-01T00:00:00.000Z', monthly_fee: 2.5 },
    },
    following: ['set_id'],
  },
  '/api/v1/routing/carriers': {
    bare: { name: 'north', gateways: [{ host: '192.0.2.7' }] },
    least: {
      ...{ name: 'north', gateways: [{ host: '192.0.2.7' }] },
      auth: {
        ...{ type: 'register', username: 'us', password: 'a trunk secret', realm: 'north' },
        ...{ from_user: '4930', from_domain: 'nova.example', expires: 600 },
      },
      caller_id: { mode: 'fixed', value: '4930' },
      number_rules: { in: [{ match: '^00', replace: '' }], out: [{ match: '^0', replace: '49' }] },
    },
    other: {
      ...{ name: 'north 2', gateways: [{ host: '192.0.2.8', port: 5070 }], is_active: false },
      auth: {
        ...{ type: 'digest', username: 'we', password: 'a new secret', realm: 'south' },
        ...{ from_user: '4940', from_domain: 'novo.example', expires: 900 },
      },
      caller_id: { mode: 'pai', value: '4940' },
      stir: { sign: true, verify: 'mark' },
      hunting: {
        ...{ next_on: ['5xx', 'Q.850;cause=34'], stop_on: ['503'], max_attempts: 3 },
        ...{ max_seconds: 9, redirects: 'follow' },
        answers: [{ match: '503', status: 480, reason: 'Later' }],
      },
      number_rules: { in: [], out: [{ match: '^1', replace: '' }] },
      header_rules: [
        {
          ...{ direction: 'in', do: 'set', header: 'To', part: 'uri_parameter' },
          ...{ parameter: 'user', value: 'phone' },
        },
        { direction: 'out', do: 'copy', header: 'X-A', part: 'value', source: 'X-B' },
        { do: 'rewrite', header: 'From', part: 'user', pattern: '^00', replacement: '+' },
      ],
      ...{ payer: 'from_number', direction: 'out', strip_headers: ['Diversion'], ...voice },
      ...{ customer: 'nova', rate_plan: 'plan', inbound_set: 900, max_calls: 7, max_cps: 8 },
      ...{ distribution: 'round_robin' },
      caller_identity: callerRules,
    },
    secret: { table: 'carrier', column: 'auth_password' },
  },
  '/api/v1/telephony/ai-agents': {
    least: { name: 'ai', extension: '700', sip_uri: 'sip:ai@192.0.2.9' },
    other: {
      ...{ name: 'ai 2', extension: '701', sip_uri: 'sip:ai@192.0.2.10', description: 'speaks' },
      ...{ max_calls: 7, is_active: false, strip_headers: ['Diversion'], ...voice },
    },
  },
  '/api/v1/webhooks': {
    least: { url, events: ['call.ended'] },
    other: {
      ...{ url: `${url}/b`, events: ['call.denied'], description: 'books', is_active: false },
      approval_links: true,
    },
    secret: { table: 'webhook_endpoint', column: 'secret' },
  },
  '/api/v1/routing-webhooks': {
    least: { url },
    other: {
      ...{ url: `${url}/b`, description: 'portability', carrier: 'transit', set: 900 },
      ...{ timeout_ms: 300, fallback: 'refuse', cache_seconds: 60, cache_key: ['to'] },
      ...{ enabled: false, secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw' },
    },
    secret: { table: 'routing_webhook', column: 'secret' },
  },
  '/api/v1/alert-channels': {
    least: { name: 'noc', kind: 'email', to: ['noc@example.com'] },
    other: {
      ...{ name: 'noc 2', to: ['a@example.com', 'b@example.com'], from: 'pbx@example.com' },
      ...{ smtp_host: 'mail.example.com', smtp_port: 2525, smtp_tls: 'tls', smtp_user: 'pbx' },
      ...{ url, is_enabled: false, secret: 'hunter-two' },
    },
    secret: { table: 'alert_channel', column: 'secret' },
  },
  '/api/v1/alert-rules': {
    least: { name: 'calls', on: 'asr_below', threshold: 30, channels: [1] },
    other: {
      ...{ name: 'calls 2', on: 'mos_below', threshold: 3.5, channels: ['first', 'second'] },
      ...{ severity: 'critical', window_seconds: 600, least_calls: 5, for_seconds: 60 },
      ...{ customer: 'nova', carrier: 'transit', group_seconds: 0, is_enabled: false },
      ...{ node: 'sip:10.0.0.1:5060', least_severity: 'high' },
      quiet_hours: {
        ...{ from: '22:00', to: '07:00', time_zone: 'Asia/Tokyo', holds_critical: true },
      },
    },
  },
  '/api/v1/stir/keys': {
    least: { name: 'shaken', private_key: rfcKey, x5u: 'https://certificates.example/a.pem' },
    other: {
      ...{ name: 'shaken 2', private_key: rfcKeyAsPkcs8, certificate: rfcCertificate },
      ...{ x5u: 'https://certificates.example/b.pem', is_active: false },
      ...{ valid_from: '2026-02-01T00:00:00.000Z', valid_until: '2026-03-01T00:00:00.000Z' },
    },
    following: ['subject', 'expires_at'],
    secret: { table: 'stir_key', column: 'private_key' },
  },
  '/api/v1/stir/authorities': {
    least: { name: 'root', certificate: authorityPem },
    other: { name: 'root 2', certificate: otherAuthorityPem, is_active: false },
    following: ['subject', 'expires_at'],
  },
  '/api/v1/identity-providers': {
    least: {
      ...{ name: 'login', issuer: 'https://login.example', client_id: 'one' },
      role_mappings: [{ value: 'voice', role: 'auditor' }],
    },
    other: {
      ...{ name: 'login 2', issuer: 'https://other.example', client_id: 'two' },
      ...{ client_secret: 'a secret', scopes: ['openid', 'groups'], role_claim: 'roles' },
      ...{ username_claim: 'email', is_enabled: false },
      role_mappings: [{ value: 'voice 2', role: 'operator', tenant: 'acme' }],
    },
    secret: { table: 'identity_provider', column: 'client_secret' },
  },
  '/api/v1/pbx/extensions': {
    least: {
      ...{ extension: '101', domain: 'acme.example', display_name: 'One' },
      password: 'x9Kd72hQw1',
    },
    other: {
      ...{ extension: '102', domain: 'acme.example', display_name: 'Two', password: 'y9Kd72hQw1' },
      ...{ voicemail_enabled: false, call_recording: 'never', email: 'two@acme.example' },
      ...{ customer: 'nova', ...voice },
      ...{ caller_number: '+4930101', caller_identity: callerRules },
    },
    secret: { table: 'extension', column: 'ha1_sha256' },
  },
  '/api/v1/customers': {
    bare: { name: 'luna' },
    following: ['currency'],
    least: { name: 'luna', email: 'luna@luna.example', password: 'a secret word' },
    other: {
      ...{ name: 'luna 2', email: 'two@luna.example', password: 'another word', is_active: false },
      ...{ default_number: '+4931', caller_identity: callerRules },
      ...{ rate_plan: 'plan', numbers: ['4931'], credit_limit: 5, max_concurrent_calls: 6 },
      ...{
        currency: 'EUR',
        max_cps: 7,
        max_daily_spend: 8.5,
        max_call_seconds: 9,
        low_balance_threshold: 0.5,
      },
      ...{ loss_protection: 'refuse', min_margin: '0.002', time_zone: 'Asia/Tokyo' },
    },
    secret: { table: 'customer', column: 'password_hash' },
  },
  '/api/v1/rate-plans': {
    least: { name: 'gold' },
    other: {
      ...{ name: 'silver', currency: 'EUR', decimals: 2, rounding: 'half_up', priced_by: 'rn' },
      ...{ loss_protection: 'warn', min_margin: '5%' },
      deck_mapping: { columns: { prefix: 'Vorwahl', rate_per_minute: 'Preis' }, decimal: ',' },
      ...{ time_zone: 'Asia/Tokyo', holidays: ['12-25'], price_change: 'change' },
      periods: [{ name: 'peak', days: ['mon'], from: '08:00', to: '20:00' }],
    },
  },
  '/api/v1/rates': {
    least: { rate_plan: 'plan', prefix: '49', rate_per_minute: 0.5 },
    other: {
      ...{ rate_plan: 'plan', prefix: '48', description: 'Poland', rate_per_minute: 0.25 },
      ...{ connect_fee: 0.1, first_increment: 30, first_rate_per_minute: 0.75, increment: 6 },
      ...{ blocked: true, effective_from: '2026-02-01T00:00:00.000Z' },
      ...{ effective_to: '2026-03-01T00:00:00.000Z', period: 'peak' },
    },
    following: ['first_rate_per_minute'],
  },
}

let world: TestResources
let document: Json

beforeAll(async () => {
  world = await openResources()
  ;({ document } = documentOf(world.app))
  await world.user('root', 'admin')
  const make = async (path: string, body: Json) => {
    const answer = await world.call('POST', `/api/v1${path}`, body)
    if (answer.status !== 201) throw new Error(`${path}: ${answer.text}`)
  }
  await make('/tenants', { slug: 'acme', domains: ['acme.example'] })
  await make('/rate-plans', { name: 'plan' })
  await make('/customers', { name: 'nova' })
  const nodes = [{ host: '10.9.0.1' }]
  await make('/dispatcher', { endpoint_name: 'base', algorithm: 8, set_id: 900, nodes })
  await make('/routing/carriers', { name: 'transit', gateways: [{ host: '192.0.2.99' }] })
  for (const name of ['first', 'second'])
    await make('/alert-channels', { name, kind: 'slack', secret: url })
  await make('/telephony/ai-agents', { name: 'bot', extension: '799', sip_uri: 'sip:b@192.0.2.98' })
})

const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const withoutSecret = ({ password: _, private_key: __, ...patch }: Json): Json =>
  Object.fromEntries(
    Object.entries(patch).map(([name, value]) => [
      name,
      isObject(value) ? withoutSecret(value) : value,
    ]),
  )

/** RFC 7396 §2, word by word; but what null removes is as it is by default. */
function merged(target: unknown, patch: unknown, blank: unknown): unknown {
  if (!isObject(patch)) return patch === null ? blank : patch
  const result: Record<string, unknown> = isObject(target) ? { ...target } : {}
  for (const [name, value] of Object.entries(patch)) {
    const empty = isObject(blank) ? blank[name] : undefined
    result[name] = merged(result[name], value, empty)
  }
  return result
}

/**
 * A list of objects may show more of each, such as its id; an object shows null for what it lacks.
 */
function shows(actual: unknown, expected: unknown): boolean {
  if (Array.isArray(expected))
    return (
      Array.isArray(actual) &&
      actual.length === expected.length &&
      expected.every((each, index) => shows(actual[index], each))
    )
  if (isObject(expected))
    return Object.entries(expected).every(([name, value]) =>
      shows(isObject(actual) ? actual[name] : undefined, value),
    )
  return (actual ?? null) === (expected ?? null)
}

/** Some of the fields, each with its other value or null. */
function patchesOf(other: Json): fc.Arbitrary<Json> {
  const fields = Object.entries(other).map(([name, value]) => {
    const given: fc.Arbitrary<unknown> = isObject(value) ? patchesOf(value) : fc.constant(value)
    return [name, fc.oneof({ weight: 4, arbitrary: given }, fc.constant(null))] as const
  })
  return fc
    .subarray(fields, { minLength: 1, maxLength: Math.min(4, fields.length) })
    .chain((some) => fc.record(Object.fromEntries(some)))
}

/** Asks with a key that may do everything; of rates a minute, it asks again later. */
const ask = (method: string, path: string, body?: unknown) => {
  world.tick(100)
  return world.call(method, path, body)
}

test('every resource that can be changed is tried with every field of a change', () => {
  const changes = bodiesOf(document).filter(({ method }) => method === 'patch')
  const collections = changes.map(({ path }) => path.replace(/\/\{\w+\}$/, ''))
  expect(collections.toSorted()).toEqual(Object.keys(resources).toSorted())
  for (const { path, fields } of changes) {
    const { other = {} } = resources[path.replace(/\/\{\w+\}$/, '')] ?? {}
    const leaves = [...fields.keys()].map((field) => field.split('.').slice(0, 2))
    const untried = leaves.filter(([top = '', inner = '']) => {
      const isAlias = top.endsWith('_id') && fields.has(top.slice(0, -3))
      const value = other[top]
      // An object of any members has none that could be tried.
      const hasInner = isObject(value) && inner !== ''
      const isTried = hasInner ? Object.hasOwn(value, inner) : Object.hasOwn(other, top)
      return !isAlias && top !== 'tenant' && !isTried
    })
    expect([path, untried]).toEqual([path, []])
  }
})

const volatile = new Set(['updated_at', 'status', 'registration', 'key_prefix', 'key_hash'])
const lasting = (view: Json): Json =>
  Object.fromEntries(Object.entries(view).filter(([name]) => !volatile.has(name)))

const isSecretIn = (patch: unknown): boolean =>
  isObject(patch) &&
  (['password', 'secret', 'private_key', 'client_secret'].some((name) =>
    Object.hasOwn(patch, name),
  ) ||
    Object.values(patch).some(isSecretIn))

const rowOf = ({ body }: { readonly body: unknown }): Json => {
  const { data = body } = Object(body) as { readonly data?: unknown }
  return data as Json
}

interface Place {
  readonly path: string
  readonly row: Json
}

let count = 0

/** A removed row may keep its name, so each has another. */
async function make(collection: string, body: Json): Promise<Place> {
  count += 1
  const name = `${collection.split('/').at(-1) ?? ''} ${count}`
  const names = {
    ...(Object.hasOwn(body, 'name') && { name }),
    ...(Object.hasOwn(body, 'username') && { username: name.replace(' ', '') }),
  }
  const made = await ask('POST', collection, { ...body, ...names })
  expect([made.status, made.text]).toEqual([201, made.text])
  const row = rowOf(made)
  return { path: `${collection}/${String(row['uuid'] ?? row['id'])}`, row }
}

const viewOf = async (path: string): Promise<Json> => lasting(rowOf(await ask('GET', path)))

const secretOf = ({ secret }: Patched, { id = null, uuid = id }: Json) =>
  secret &&
  readRow<Json>(
    world.store,
    `SELECT ${secret.column} AS secret FROM ${secret.table}
     WHERE ${id === null ? 'uuid' : 'id'} = '${String(id ?? uuid)}'`,
  )

/** Returns whether the change was made. Throws where it is not as RFC 7396 says. */
async function change(resource: Patched, at: Place, blank: Json, patch: Json): Promise<boolean> {
  const { other, following = [] } = resource
  const { path, row } = at
  const [before, secretBefore] = [await viewOf(path), await secretOf(resource, row)]
  const { status, text } = await ask('PATCH', path, patch)
  const after = await viewOf(path)
  expect([text, [200, 400, 403, 409].includes(status)]).toEqual([text, true])
  const isMade = status === 200
  const expected = isMade ? (merged(before, withoutSecret(patch), blank) as Json) : before
  for (const name of Object.keys(other).filter((each) => Object.hasOwn(before, each)))
    if (!following.includes(name))
      expect([text, name, shows(after[name], expected[name])]).toEqual([text, name, true])
  if (!isMade || !isSecretIn(patch)) expect(await secretOf(resource, row)).toEqual(secretBefore)
  return isMade
}

test.each(Object.entries(resources))(
  'a change of %s is merged as RFC 7396 says, and no secret goes by being absent',
  async (collection, resource) => {
    const { least, bare = least, other } = resource
    const at = collection.replace('{id}', '1')
    const empty = await make(at, bare)
    const blank = await viewOf(empty.path)
    await ask('DELETE', empty.path)
    let made = 0
    const tried = fc.asyncProperty(
      fc.array(patchesOf(other), { minLength: 2, maxLength: 6 }),
      async (patches) => {
        const place = await make(at, least)
        try {
          for (const patch of patches) if (await change(resource, place, blank, patch)) made += 1
        } finally {
          await ask('DELETE', place.path)
        }
      },
    )
    await fc.assert(tried, { numRuns: 6 })
    expect(made).toBeGreaterThan(5)
  },
)
