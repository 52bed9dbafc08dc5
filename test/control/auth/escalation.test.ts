/**
 * A credential reaches no further than it was made to: neither by the keys and users that it makes,
 * nor by a field.
 */
import { expect, test } from 'vitest'
import { openResources } from '../../support/resources.ts'
import { startOfTime } from '../../support/control.ts'

const hour = 3_600_000
const later = (ms: number) => new Date(startOfTime + ms).toISOString()
const PATH = '/api/v1/application-keys'
const from = '10.1.2.3'

/** A key with every scope and every limit, and another one of the same kind. */
async function opened(scopes: readonly string[] = ['*']) {
  const rig = await openResources()
  await rig.tenant('acme', ['acme.example'])
  const limits = {
    scopes,
    rate_limit_rpm: 60,
    expires_at: later(hour),
    allowed_ips: ['10.1.0.0/16'],
  }
  const token = await rig.key(limits)
  const ask = (method: string, path: string, body?: unknown) =>
    rig.request(path, { method, token, from, body })
  const uuidOf = async (body: object): Promise<string> =>
    (await rig.call('POST', PATH, { scopes, ...body })).data<{ uuid: string }>().uuid
  return { ...rig, token, ask, uuidOf, limits }
}

const wider: readonly [string, object][] = [
  ['rate_limit_rpm', { rate_limit_rpm: 61 }],
  ['expires_at', { expires_at: later(2 * hour) }],
  ['expires_at', { expires_at: null }],
  ['allowed_ips', { allowed_ips: [] }],
  ['allowed_ips', { allowed_ips: ['10.1.0.0/15'] }],
  ['allowed_ips', { allowed_ips: ['10.1.2.3', '192.0.2.1'] }],
  ['allowed_ips', { allowed_ips: ['::/0'] }],
]

test.each(wider)('a key with limits makes no key with a wider %s: %j', async (path, more) => {
  const { ask } = await opened()
  const answer = await ask('POST', PATH, { name: 'wider', ...more })
  expect([answer.status, answer.code]).toEqual([403, 'limit_escalation'])
  expect(answer.body).toMatchObject({ details: [{ path }] })
})

test.each(wider)('a key widens neither itself nor another one in %s: %j', async (path, more) => {
  const { ask, uuidOf, limits } = await opened()
  const self = (await ask('GET', `${PATH}/self`)).data<{ uuid: string }>().uuid
  for (const uuid of [self, await uuidOf({ ...limits, name: 'equal' })]) {
    const answer = await ask('PATCH', `${PATH}/${uuid}`, more)
    expect([answer.status, answer.code]).toEqual([403, 'limit_escalation'])
    expect(answer.body).toMatchObject({ details: [{ path }] })
  }
})

test.each([
  ['rate_limit_rpm', { rate_limit_rpm: null }],
  ['allowed_ips', { allowed_ips: null }],
])('clearing %s of a key is widening it', async (_, clears) => {
  const { ask } = await opened()
  const { uuid } = (await ask('GET', `${PATH}/self`)).data<{ uuid: string }>()
  expect((await ask('PATCH', `${PATH}/${uuid}`, clears)).code).toBe('limit_escalation')
})

test('what a new key is not given is as narrow as the key that makes it', async () => {
  const { ask, limits } = await opened()
  const made = await ask('POST', PATH, { name: 'inherits' })
  const { rate_limit_rpm, expires_at, allowed_ips } = limits
  expect(made.body).toMatchObject({ data: { rate_limit_rpm, expires_at, allowed_ips } })
  const narrower = { rate_limit_rpm: 5, expires_at: later(60_000), allowed_ips: ['10.1.9.0/24'] }
  const narrow = await ask('POST', PATH, { name: 'narrower', ...narrower })
  expect([narrow.status, narrow.body]).toMatchObject([201, { data: narrower }])
})

test('a key with limits gets no working token of a key without them, nor wakes one', async () => {
  const { ask, uuidOf } = await opened()
  const uuid = await uuidOf({ name: 'wide', is_active: false })
  for (const answer of [
    await ask('POST', `${PATH}/${uuid}/rotate`, {}),
    await ask('PATCH', `${PATH}/${uuid}`, { is_active: true }),
    await ask('PATCH', `${PATH}/${uuid}`, { description: 'mine' }),
  ])
    expect([answer.status, answer.code]).toEqual([403, 'limit_escalation'])
})

test('a key with limits makes and changes no person, who would have none', async () => {
  const { ask, user, call } = await opened()
  await user('ada', 'admin')
  const id = (await call('GET', '/users?search=ada')).data<{ id: number }[]>()[0]?.id
  const body = { username: 'eve', password: 'a long password', role: 'admin' }
  for (const answer of [
    await ask('POST', '/users', body),
    await ask('PATCH', `/users/${id}`, { password: 'a long password' }),
    await ask('PATCH', `/users/${id}`, { role: 'admin' }),
    await ask('PATCH', `/users/${id}`, { is_active: true }),
  ])
    expect([answer.status, answer.code]).toEqual([403, 'limit_escalation'])
  expect((await call('POST', '/users', body)).status).toBe(201)
})

test.each([
  ['scopes', { scopes: ['*'] }, 'scope_escalation'],
  ['tenant', { tenant_scope: 'global' }, 'wrong_tenant'],
  ['tenant', { tenant_scope: 'tenant', tenant_slug: 'other' }, 'wrong_tenant'],
  ['domain', { domain: null }, 'wrong_tenant'],
  ['domain', { domain: 'second.example' }, 'wrong_tenant'],
])('a key of one domain of a tenant makes none with another %s: %j', async (_, more, code) => {
  const rig = await openResources()
  await rig.tenant('acme', ['acme.example', 'second.example'])
  await rig.tenant('other')
  const own = { tenant_scope: 'tenant', tenant_slug: 'acme', domain: 'acme.example' }
  const token = await rig.key({ ...own, scopes: ['keys:*'] })
  const answer = await rig.request(PATH, { token, body: { name: 'wider', scopes: [], ...more } })
  expect([answer.status, answer.code]).toEqual([403, code])
})

test('no tool makes, widens or wakes a key, and each that changes something needs its scope', async () => {
  const { call } = await opened()
  type Tool = { name: string; scopes: string[]; annotations: { readOnlyHint: boolean } }
  const { tools } = (await call('GET', '/api/v1/mcp/tools')).data<{ tools: Tool[] }>()
  const writing = tools.filter(({ annotations }) => !annotations.readOnlyHint)
  const expected = [
    'add_number',
    'add_rate',
    'ban_address',
    'hangup_call',
    'propose_change',
    'reload_dispatchers',
    'remove_spend_guard',
    'rerate_calls',
    'resume_api_key',
    'revoke_sbc_api_key',
    'set_customer_limits',
    'set_dispatcher_state',
    'set_spend_guard',
    'set_trunk_state',
    'suspend_api_key',
    'undo_change',
  ]
  expect(writing.map(({ name }) => name).toSorted()).toEqual(expected)
  for (const { name, scopes } of writing) {
    // A proposal is another one's to decide; undoing needs the scopes of the change that is undone.
    if (name === 'propose_change') expect(scopes).toEqual(['mcp:read', 'mcp:propose'])
    else expect(scopes).toContain('mcp:write')
    const isOfOthers = name === 'propose_change' || name === 'undo_change'
    const own = scopes.filter((scope) => !scope.startsWith('mcp:'))
    expect([name, own.length > 0]).toEqual([name, !isOfOthers])
  }
})

const gateways = [{ host: '192.0.2.1' }]
const phone = {
  extension: '101',
  password: 'a long password',
  display_name: 'Phone',
  tenant: 'acme',
}

/**
 * Path, what the key holds, the least that it lacks, a body that is allowed, and what it may not
 * add.
 */
const hook = { url: 'https://a.example/', events: ['key.revoked'] }
const carrier = { name: 'a', gateways }
const route = { name: 'a', carrier: 'loop' }
const fields: readonly [string, string, string, object, object][] = [
  ['/customers', 'customers', 'wallets:write', { name: 'a' }, { balance: '10' }],
  ['/customers', 'customers', 'wallets:write', { name: 'a' }, { credit_limit: 10 }],
  ['/customers', 'customers', 'wallets:write', { name: 'a' }, { rate_plan: 'cheap' }],
  ['/customers', 'customers', 'rates:write', { name: 'a' }, { rate_plan_id: 1 }],
  ['/customers', 'customers', 'wallets:read,cdrs:read', { name: 'a' }, { password: 'a long one' }],
  ['/routing/carriers', 'carriers', 'customers:write', carrier, { customer: 'payer' }],
  ['/routing/carriers', 'carriers', 'customers:write', carrier, { payer: 'from_number' }],
  ['/outbound-routes', 'routes', 'wallets:write', route, { emergency: true }],
  ['/outbound-routes', 'routes', 'rates:write', route, { loss_protection: 'never' }],
  ['/customers', 'customers', 'rates:write', { name: 'a' }, { loss_protection: 'never' }],
  ['/pbx/extensions', 'extensions', 'customers:write', phone, { customer_id: 1 }],
  ['/webhooks', 'webhooks', 'cdrs:read', hook, { events: ['call.ended'] }],
  ['/webhooks', 'webhooks', 'wallets:read', hook, { events: ['wallet.adjusted'] }],
  ['/webhooks', 'webhooks', 'dispatcher:read', hook, { events: ['dispatcher.node.up'] }],
  ['/webhooks', 'webhooks', '*:read', hook, { events: ['*'] }],
]

async function filled() {
  const rig = await opened()
  await rig.call('POST', '/rate-plans', { name: 'cheap' })
  await rig.call('POST', '/customers', { name: 'payer' })
  await rig.call('POST', '/routing/carriers', { name: 'loop', gateways: [{ host: '192.0.2.9' }] })
  return rig
}

test.each(fields)(
  '%s: a key of %s:write needs %s for more than %j: %j',
  async (path, own, lacking, body, more) => {
    const rig = await filled()
    const poor = await rig.key({ scopes: [`${own}:*`, 'keys:read'] })
    const rich = await rig.key({ scopes: [`${own}:*`, 'keys:read', ...lacking.split(',')] })
    const refused = await rig.request(path, { token: poor, body: { ...body, ...more } })
    expect([refused.status, refused.code]).toEqual([403, 'insufficient_scope'])
    const made = await rig.request(path, { token: poor, body })
    expect([made.status, made.text]).toEqual([201, made.text])
    const shown = made.data<{ id: number } | undefined>() ?? (made.body as { id: number })
    const change = { token: poor, method: 'PATCH', body: more }
    const isChangeable = !('balance' in more)
    if (isChangeable) {
      const widened = await rig.request(`${path}/${shown.id}`, change)
      expect([widened.status, widened.code]).toEqual([403, 'insufficient_scope'])
    }
    await rig.call('DELETE', `${path}/${shown.id}`)
    expect((await rig.request(path, { token: rich, body: { ...body, ...more } })).status).toBe(201)
  },
)

test('what a key may not write may stay as it is while the key changes the rest', async () => {
  const rig = await filled()
  const body = {
    name: 'a',
    rate_plan: 'cheap',
    credit_limit: 10,
    balance: '5',
    password: 'a long password',
  }
  const { id } = (await rig.call('POST', '/customers', body)).data<{ id: number }>()
  const token = await rig.key({ scopes: ['customers:*'] })
  const change = { name: 'b', rate_plan: 'cheap', credit_limit: '10' }
  const changed = await rig.request(`/customers/${id}`, { token, method: 'PATCH', body: change })
  expect([changed.status, changed.text]).toEqual([200, changed.text])
  for (const more of [{ currency: 'JPY' }, { rate_plan: null }, { credit_limit: null }])
    expect(
      (await rig.request(`/customers/${id}`, { token, method: 'PATCH', body: more })).status,
    ).not.toBe(200)
})

test('an emergency route goes nowhere else by a key that gives no money away', async () => {
  const rig = await filled()
  const route = { name: 'sos', carrier: 'loop', prefix: '112', emergency: true }
  const { id } = (await rig.call('POST', '/outbound-routes', route)).data<{ id: number }>()
  const token = await rig.key({ scopes: ['routes:*'] })
  for (const body of [{ prefix: '' }, { prepend: '1900' }])
    expect(
      (await rig.request(`/outbound-routes/${id}`, { token, method: 'PATCH', body })).code,
    ).toBe('insufficient_scope')
})

test('a webhook that hears more than a key may read is neither led elsewhere nor given a new secret by it', async () => {
  const rig = await filled()
  const { id } = (await rig.call('POST', '/webhooks', { url: 'https://a.example/' })).data<{
    id: number
  }>()
  const token = await rig.key({ scopes: ['webhooks:*'] })
  const url = 'https://evil.example/'
  const moved = await rig.request(`/webhooks/${id}`, { token, method: 'PATCH', body: { url } })
  const rotated = await rig.request(`/webhooks/${id}/rotate`, { token, body: {} })
  expect([moved.code, rotated.code]).toEqual(['insufficient_scope', 'insufficient_scope'])
})

test('a transfer dials a call that is paid for: it needs calls:originate too', async () => {
  const rig = await opened()
  const token = await rig.key({ scopes: ['calls:control'] })
  const body = { call_uuid: '6f9619ff-8b86-4d01-b42d-00cf4fc964ff', destination: '1900555' }
  const refused = await rig.request('/telephony/transfer', { token, body })
  expect([refused.status, refused.code]).toEqual([403, 'insufficient_scope'])
  expect((await rig.call('POST', '/telephony/transfer', body)).code).toBe('not_found')
})

test('a 403 names the scope that is needed and those that the credential has, and no others', async () => {
  const rig = await opened()
  await rig.key({ scopes: ['audit:read'] })
  const token = await rig.key({ scopes: ['keys:read', 'cdrs:*'] })
  const { body } = await rig.request('/customers', { token })
  expect(body).toMatchObject({
    error: 'This needs the scope customers:read; the credential has keys:read, cdrs:*',
  })
})

test('a key that could make an administrator makes keys of any rate, and still does not widen itself', async () => {
  const rig = await openResources()
  const token = await rig.key({ scopes: ['*'] })
  const ask = (method: string, path: string, body?: unknown) =>
    rig.request(path, { method, token, body })
  const made = await ask('POST', PATH, { name: 'fast', rate_limit_rpm: 100_000 })
  expect([made.status, made.data<{ rate_limit_rpm: number }>().rate_limit_rpm]).toEqual([
    201, 100_000,
  ])
  const self = (await ask('GET', `${PATH}/self`)).data<{ uuid: string }>().uuid
  const widened = await ask('PATCH', `${PATH}/${self}`, { rate_limit_rpm: 1_201 })
  expect([widened.status, widened.code]).toEqual([403, 'limit_escalation'])
})

test.each([
  ['of a tenant', { tenant_scope: 'tenant', tenant_slug: 'acme' }],
  ['with fewer scopes', { scopes: ['keys:*', 'users:*'] }],
  ['with an expiry', { expires_at: later(hour) }],
])('a key %s makes no key of a higher rate', async (_, limits) => {
  const rig = await openResources()
  await rig.tenant('acme', ['acme.example'])
  const token = await rig.key({ scopes: ['*'], ...limits })
  const body = { name: 'fast', rate_limit_rpm: 1_201, ...limits, scopes: [] }
  const made = await rig.request(PATH, { method: 'POST', token, body })
  expect([made.status, made.code]).toEqual([403, 'limit_escalation'])
})
