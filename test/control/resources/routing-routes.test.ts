import { expect, test } from 'vitest'
import { openResources, type TestResources } from '../../support/resources.ts'
import { readRow } from '../../support/stored.ts'

const gateway = { host: '192.0.2.1' }

const carrier = { name: 'loop', gateways: [gateway] }

const idOf = async (answer: ReturnType<TestResources['call']>): Promise<number> =>
  (await answer).data<{ id: number }>().id

test('a carrier gets its defaults: recognized by address from any port, called at 5060', async () => {
  const { call, reloads } = await openResources()
  const created = await call('POST', '/api/v1/routing/carriers', carrier)
  const given = { host: '192.0.2.1', port: 0, transport: 'udp', netmask: 32 }
  expect(created.data()).toMatchObject({
    tenant: null,
    customer: null,
    payer: 'customer',
    is_active: true,
    direction: 'both',
    gateways: [{ ...given, inbound: true, outbound: true, priority: 10, weight: 100 }],
    auth: { type: 'ip', username: null },
    caller_id: { mode: 'pass', value: null },
    number_rules: { in: [], out: [] },
    media: 'bypass',
    max_calls: 0,
    status: { is_usable: true, active_calls: 0, registration: null },
  })
  expect(reloads.routing).toBe(1)
})

test.each([
  ['auth.password', { auth: { password: 'secret' } }],
  ['auth.expires', { auth: { type: 'digest', username: 'a', password: 'b', expires: 60 } }],
  ['media', { media: 'anchor' }],
  ['codecs', { codecs: ['PCMA'] }],
])('a carrier that asks for %s is refused as not supported', async (path, change) => {
  const { call } = await openResources()
  const answer = await call('POST', '/routing/carriers', { ...carrier, ...change })
  expect(answer.body).toMatchObject({ statusCode: 400, code: 'not_supported', details: [{ path }] })
})

test.each([
  ['the same address', { host: '192.0.2.1' }],
  ['the same network', { host: '192.0.2.200', netmask: 24 }, { host: '192.0.2.7', netmask: 24 }],
  ['the same port', { host: '192.0.2.1', port: 5070 }, { host: '192.0.2.1', port: 5070 }],
  ['the same name', { host: 'sip.example.com' }, { host: 'SIP.example.com' }],
  ['another spelling', { host: '2001:db8:0:0::1' }, { host: '2001:db8::1' }],
])('gateways of two carriers with %s are ambiguous', async (_, second, first = gateway) => {
  const { call } = await openResources()
  await call('POST', '/routing/carriers', { name: 'a', gateways: [first] })
  const answer = await call('POST', '/routing/carriers', { name: 'b', gateways: [second] })
  expect(answer.body).toMatchObject({
    statusCode: 409,
    code: 'ambiguous_gateway',
    details: [{ path: 'gateways.0.host' }],
  })
})

test.each([
  ['another port', { host: '192.0.2.1', port: 5070 }],
  ['a larger network around the first', { host: '192.0.2.1', netmask: 24 }],
  ['calls outwards only', { host: '192.0.2.1', inbound: false }],
])('gateways of two carriers with %s can be told apart', async (_, second) => {
  const { call } = await openResources()
  await call('POST', '/routing/carriers', { name: 'a', gateways: [gateway] })
  const answer = await call('POST', '/routing/carriers', { name: 'b', gateways: [second] })
  expect(answer.status).toBe(201)
})

test('a carrier that would become ambiguous when it is switched on stays off', async () => {
  const { call } = await openResources()
  await call('POST', '/routing/carriers', carrier)
  const twin = { name: 'twin', gateways: [gateway], is_active: false }
  const id = await idOf(call('POST', '/routing/carriers', twin))
  const answer = await call('PATCH', `/routing/carriers/${id}`, { is_active: true })
  expect(answer.code).toBe('ambiguous_gateway')
  expect((await call('GET', `/routing/carriers/${id}`)).data()).toMatchObject({ is_active: false })
})

test('a tenant is not told whose carrier its gateway collides with', async () => {
  const { call, callAs, tenant } = await openResources()
  await tenant('acme')
  await call('POST', '/routing/carriers', { ...carrier, name: 'secret partner' })
  const answer = await callAs('acme', 'POST', '/routing/carriers', { ...carrier, name: 'mine' })
  expect(answer.status).toBe(409)
  expect(answer.text).not.toContain('secret partner')
})

test('gateways that stay keep their id over a change', async () => {
  const { call } = await openResources()
  const two = { ...carrier, gateways: [gateway, { host: '192.0.2.2' }] }
  const id = await idOf(call('POST', '/routing/carriers', two))
  const changed = await call('PATCH', `/routing/carriers/${id}`, {
    gateways: [{ host: '192.0.2.2', priority: 1 }, { host: '192.0.2.3' }],
  })
  expect(changed.data()).toMatchObject({
    gateways: [
      { id: 2, host: '192.0.2.2', priority: 1 },
      { id: 3, host: '192.0.2.3' },
    ],
  })
})

test('a reference is an id or a name, in either spelling of its field', async () => {
  const { call } = await openResources()
  const id = await idOf(call('POST', '/routing/carriers', carrier))
  const spellings = [
    { carrier: 'loop' },
    { carrier: id },
    { carrier_id: id },
    { carrier_id: 'loop' },
  ]
  for (const [index, spelling] of spellings.entries()) {
    const route = await call('POST', '/outbound-routes', { name: `r${index}`, ...spelling })
    expect(route.data()).toMatchObject({ carrier_id: id, carrier: 'loop' })
  }
  const both = await call('POST', '/outbound-routes', {
    name: 'x',
    carrier: 'loop',
    carrier_id: 99,
  })
  expect(both.body).toMatchObject({ statusCode: 400, details: [{ path: 'carrier_id' }] })
})

test('a changed reference takes the place of the old one, however it is spelled', async () => {
  const { call } = await openResources()
  await call('POST', '/routing/carriers', carrier)
  await call('POST', '/routing/carriers', { name: 'b', gateways: [{ host: '192.0.2.9' }] })
  const id = await idOf(call('POST', '/outbound-routes', { name: 'r', carrier: 'loop' }))
  const changed = await call('PATCH', `/outbound-routes/${id}`, { carrier: 'b' })
  expect(changed.data()).toMatchObject({ carrier: 'b', carrier_id: 2 })
  const again = await call('PATCH', `/outbound-routes/${id}`, { carrier_id: 1 })
  expect(again.data()).toMatchObject({ carrier: 'loop' })
  const blocked = await call('PATCH', `/outbound-routes/${id}`, { carrier: null, mode: 'block' })
  expect(blocked.data()).toMatchObject({ carrier: null, mode: 'block' })
})

test('a carrier that a route uses cannot be removed', async () => {
  const { call } = await openResources()
  const id = await idOf(call('POST', '/routing/carriers', carrier))
  const route = await idOf(call('POST', '/outbound-routes', { name: 'r', carrier: 'loop' }))
  const refused = await call('DELETE', `/routing/carriers/${id}`)
  expect([refused.status, refused.code]).toEqual([409, 'in_use'])
  await call('DELETE', `/outbound-routes/${route}`)
  expect((await call('DELETE', `/routing/carriers/${id}`)).data()).toEqual({ id, deleted: true })
  expect((await call('DELETE', `/routing/carriers/${id}`)).status).toBe(404)
})

test('a carrier names its price list; those that may compete have one currency', async () => {
  const { call } = await openResources()
  for (const [name, currency] of [
    ['north prices', 'USD'],
    ['south prices', 'EUR'],
  ])
    await call('POST', '/rate-plans', { name, currency })
  const north = await call('POST', '/routing/carriers', { ...carrier, rate_plan: 'north prices' })
  expect(north.data()).toMatchObject({ rate_plan: 'north prices', rate_plan_id: 1 })
  const south = { name: 'south', gateways: [{ host: '192.0.2.77' }], rate_plan: 'south prices' }
  const refused = await call('POST', '/routing/carriers', south)
  expect(refused.body).toMatchObject({
    statusCode: 400,
    details: [{ path: 'rate_plan', message: 'must be in USD, like those of other carriers' }],
  })
  expect((await call('PATCH', '/rate-plans/1', { currency: 'EUR' })).status).toBe(409)
  expect((await call('DELETE', '/rate-plans/1')).status).toBe(409)
  const route = await call('POST', '/outbound-routes', { name: 'r', carrier: 'loop', mode: 'lcr' })
  expect(route.data()).toMatchObject({ mode: 'lcr', carrier: 'loop' })
  const { id } = north.data<{ id: number }>()
  const changed = await call('PATCH', `/routing/carriers/${id}`, { max_calls: 3 })
  expect(changed.data()).toMatchObject({ rate_plan: 'north prices' })
  const without = await call('PATCH', `/routing/carriers/${id}`, { rate_plan_id: null })
  expect(without.data()).toMatchObject({ rate_plan: null, rate_plan_id: null })
})

test('prefixes of routes are read with spaces, numbers of carriers in any spelling, prepended ones in one', async () => {
  const { call } = await openResources()
  await call('POST', '/api/v1/routing/carriers', carrier)
  const route = { carrier: 'loop', mode: 'static', emergency: true }
  const emergency = await call('POST', '/outbound-routes', { ...route, name: 'e', prefix: '1 1 2' })
  expect(emergency.data()).toMatchObject({ prefix: '112' })
  for (const prepend of ['1+', '++', '1-', '1'.repeat(21)]) {
    const answer = await call('POST', '/outbound-routes', { ...route, name: 'p', prepend })
    expect(answer.body).toMatchObject({ statusCode: 400, details: [{ path: 'prepend' }] })
  }
  const plus = await call('POST', '/outbound-routes', { ...route, name: 'p', prepend: '+1' })
  expect(plus.data()).toMatchObject({ prepend: '+1' })
  const caller_id = { mode: 'fixed', value: '+1 (202) 555-0100' }
  const shown = await call('POST', '/api/v1/routing/carriers', {
    name: 'shown',
    gateways: [{ host: '192.0.2.2' }],
    caller_id,
  })
  expect(shown.data()).toMatchObject({ caller_id: { value: '+12025550100' } })
})

test("a tenant's route keeps what an operator gave it, and goes nowhere else by its tenant", async () => {
  const { call, callAs, tenant } = await openResources()
  await tenant('acme')
  await call('POST', '/routing/carriers', carrier)
  const route = { name: 'r', tenant: 'acme', carrier: 'loop' }
  const id = await idOf(call('POST', '/outbound-routes', route))
  const changed = await callAs('acme', 'PATCH', `/outbound-routes/${id}`, { priority: 3 })
  expect(changed.data()).toMatchObject({ priority: 3, carrier: 'loop' })
  // A call is priced by what was dialled, and the platform pays what its carrier is sent.
  for (const change of [{ prefix: '1900' }, { strip: 11 }, { prepend: '19005551234' }]) {
    const answer = await callAs('acme', 'PATCH', `/outbound-routes/${id}`, change)
    const path = Object.keys(change)[0]
    expect(answer.body).toMatchObject({
      statusCode: 403,
      code: 'platform_only',
      details: [{ path }],
    })
  }
})

const path = '/api/v1/routing/carriers'

const secret = 'S3cret, with a comma'

const digest = { type: 'digest', username: 'acme', password: secret }

interface StoredAuth {
  readonly auth_type: string
  readonly auth_username: string | null
  readonly auth_password: string | null
}

/** As stored, with the password opened. */
async function stored({ store }: TestResources): Promise<StoredAuth | undefined> {
  const row = await readRow<StoredAuth>(
    store,
    'SELECT auth_type, auth_username, auth_password FROM carrier',
  )
  const sealed = row?.auth_password ?? null
  if (row === undefined || sealed === null) return row
  expect(sealed).toMatch(/^enc1:/)
  const place = { table: 'carrier', column: 'auth_password', row: 1 }
  return { ...row, auth_password: store.secrets.open(place, sealed) ?? null }
}

test('a north is paid with user and password, and the password is never shown again', async () => {
  const control = await openResources()
  const { call } = control
  const auth = { ...digest, realm: 'north', from_user: '15550100', from_domain: 'acme.example' }
  const created = await call('POST', path, { ...carrier, auth })
  expect(created.status).toBe(201)
  const { password: _, ...shown } = auth
  expect(created.data()).toMatchObject({ auth: { ...shown, expires: null } })
  const answers = [created, await call('GET', path), await call('GET', `${path}/1`)]
  answers.push(
    await call('PATCH', `${path}/1`, { max_calls: 3 }),
    await call('DELETE', `${path}/1`),
  )
  for (const answer of answers) expect(answer.text).not.toContain('S3cret')
  expect(JSON.stringify(control.logged)).not.toContain('S3cret')
})

test('a change without a password leaves the stored one, a new one replaces it', async () => {
  const control = await openResources()
  const { call } = control
  await call('POST', path, { ...carrier, auth: digest })
  await call('PATCH', `${path}/1`, { max_calls: 1 })
  await call('PATCH', `${path}/1`, { auth: { type: 'register', username: 'acme2' } })
  expect(await stored(control)).toEqual({
    auth_type: 'register',
    auth_username: 'acme2',
    auth_password: secret,
  })
  await call('PATCH', `${path}/1`, { auth: { ...digest, password: 'new' } })
  expect(await stored(control)).toMatchObject({ auth_password: 'new' })
})

test('a change of one credential leaves the others, and is undone', async () => {
  const control = await openResources()
  const { call } = control
  const auth = { ...digest, realm: 'north', from_domain: 'acme.example' }
  await call('POST', path, { ...carrier, auth })
  const { password: _, ...shown } = auth
  const changed = await call('PATCH', `${path}/1`, { auth: { from_user: '15550100' } })
  expect(changed.data()).toMatchObject({ auth: { ...shown, from_user: '15550100' } })
  expect(await stored(control)).toMatchObject({ auth_password: secret })
  const id = changed.headers.get('x-change-id') ?? ''
  await call('POST', `/api/v1/changes/${id}/undo`, { reason: 'a mistake' })
  expect((await call('GET', `${path}/1`)).data()).toMatchObject({
    auth: { ...shown, from_user: null },
  })
  expect(await stored(control)).toMatchObject({ auth_password: secret })
})

test('a carrier that goes back to its address names what it no longer needs, and its password goes by null', async () => {
  const control = await openResources()
  const { call } = control
  await call('POST', path, { ...carrier, auth: digest })
  const refused = await call('PATCH', `${path}/1`, { auth: { type: 'ip' } })
  expect([refused.status, refused.text]).toEqual([400, expect.stringContaining('auth.username')])
  await call('PATCH', `${path}/1`, { auth: { type: 'ip', username: null } })
  expect(await stored(control)).toEqual({
    auth_type: 'ip',
    auth_username: null,
    auth_password: secret,
  })
  await call('PATCH', `${path}/1`, { auth: { password: null } })
  expect(await stored(control)).toMatchObject({ auth_password: null })
  const lacking = { auth: { type: 'digest', username: 'acme' } }
  expect((await call('PATCH', `${path}/1`, lacking)).text).toContain('auth.password')
})

test('registration and gateways are shown as the engine sees them', async () => {
  const { call, engine } = await openResources()
  const at = Date.UTC(2026, 0, 1)
  Object.assign(engine.trunks, {
    registrationOf: () => ({
      state: 'failed',
      registrar: 'sip:192.0.2.1:5060;transport=udp',
      expiresAt: null,
      nextAttemptAt: at + 30_000,
      lastAnswer: { at, status: 403, reason: 'Forbidden' },
    }),
    gatewayStatus: () => ({
      state: 'probing',
      latencyMs: 12,
      lastProbe: { at, status: 0, reason: 'no answer' },
      probes: { sent: 3, answered: 0, failed: 3 },
    }),
  })
  const created = await call('POST', path, { ...carrier, auth: { ...digest, type: 'register' } })
  expect(created.data()).toMatchObject({
    registration: 'failed',
    gateways: [{ status: { state: 'probing', last_probe: { status: 0, reason: 'no answer' } } }],
    status: {
      is_usable: false,
      registration: {
        expires_at: null,
        next_attempt_at: '2026-01-01T00:00:30.000Z',
        last_answer: { status: 403, at: '2026-01-01T00:00:00.000Z' },
      },
    },
  })
})

test('a carrier signs and verifies nothing until it says so, and a change of one leaves the other', async () => {
  const { call } = await openResources()
  const path = '/routing/carriers'
  const created = await call('POST', path, carrier)
  expect(created.data()).toMatchObject({ stir: { sign: false, verify: 'off' } })
  const { id } = created.data<{ id: number }>()
  await call('PATCH', `${path}/${id}`, { stir: { verify: 'refuse' } })
  const changed = await call('PATCH', `${path}/${id}`, { stir: { sign: true } })
  expect(changed.data()).toMatchObject({ stir: { sign: true, verify: 'refuse' } })
  const wrong = await call('PATCH', `${path}/${id}`, { stir: { verify: 'maybe' } })
  expect(wrong.body).toMatchObject({ statusCode: 400, details: [{ path: 'stir.verify' }] })
})

test('an inbound route may be for calls with a certain verification', async () => {
  const { call } = await openResources()
  await call('POST', '/telephony/ai-agents', {
    name: 'doorman',
    extension: '900',
    sip_uri: 'sip:900@192.0.2.9',
  })
  const route = { name: 'forged', verification: 'failed', agent: 'doorman' }
  const created = await call('POST', '/inbound-routes', route)
  expect(created.data()).toMatchObject({ verification: 'failed' })
  const { id } = created.data<{ id: number }>()
  const any = await call('PATCH', `/inbound-routes/${id}`, { verification: null })
  expect(any.data()).toMatchObject({ verification: null })
})
