/**
 * The names that one tenant gives are nothing to the others: neither refused, nor told, nor mixed
 * up.
 */
import { expect, test } from 'vitest'
import { seedFile } from '../../engine/commands/seed.ts'
import { execute } from '../../schema/sql/query.ts'
import { emptyStore } from '../support/empty-store.ts'
import { openResources } from '../support/resources.ts'
import { onSqlite } from '../support/on-sqlite.ts'

const password = 'correct horse'

async function opened() {
  const rig = await openResources()
  await rig.tenant('acme', ['acme.example'])
  await rig.tenant('other', ['other.example'])
  return rig
}

/**
 * The things that two tenants may name alike, and where a second one of the same tenant is refused.
 */
const hostOf = (tenant: string) => (tenant === 'acme' ? '192.0.2.1' : '192.0.2.2')
const alike: readonly [string, string, string, (tenant: string) => object][] = [
  ['rate plan', '/rate-plans', 'name', () => ({ name: 'default' })],
  ['customer', '/customers', 'name', () => ({ name: 'Anna' })],
  ['customer of one address', '/customers', 'email', () => ({ name: 'm', email: 'a@b.example' })],
  [
    'carrier',
    '/routing/carriers',
    'name',
    (tenant) => ({ name: 'loop', gateways: [{ host: hostOf(tenant) }] }),
  ],
  ['outbound route', '/outbound-routes', 'name', () => ({ name: 'block', mode: 'block' })],
  [
    'AI agent',
    '/telephony/ai-agents',
    'name',
    () => ({ name: 'bot', extension: '700', sip_uri: 'sip:bot@192.0.2.9' }),
  ],
  [
    'dispatcher set',
    '/dispatcher',
    'endpoint_name',
    (tenant) => ({ endpoint_name: 'pbx', algorithm: 8, nodes: [{ host: hostOf(tenant) }] }),
  ],
  [
    'extension',
    '/pbx/extensions',
    'extension',
    () => ({ extension: '101', password, display_name: 'Phone' }),
  ],
  ['application key', '/application-keys', 'name', () => ({ name: 'ci' })],
  ['user', '/users', 'username', () => ({ username: 'anna', password, role: 'auditor' })],
]

test.each(alike)(
  'a second %s of the same name is 409 in its tenant, and made in another one',
  async (_, path, field, body) => {
    const { callAs } = await opened()
    expect((await callAs('acme', 'POST', path, body('acme'))).status).toBe(201)
    const renamed = field === 'email' && { name: 'another' }
    const twin = await callAs('acme', 'POST', path, { ...body('acme'), ...renamed })
    const second = await callAs('other', 'POST', path, body('other'))
    expect([twin.status, second.status, second.code]).toEqual([409, 201, undefined])
  },
)

test('the platform keeps the names of its sets apart from those of all tenants', async () => {
  const { call, callAs } = await opened()
  const set = (host: string) => ({ endpoint_name: 'pbx', algorithm: 8, nodes: [{ host }] })
  await callAs('acme', 'POST', '/dispatcher', set('10.0.0.1'))
  const twin = await call('POST', '/dispatcher', set('10.0.0.2'))
  expect([twin.status, twin.body]).toMatchObject([409, { details: [{ path: 'endpoint_name' }] }])
  const made = await call('POST', '/dispatcher', { ...set('10.0.0.2'), endpoint_name: 'pbx 2' })
  const { id } = made.data<{ id: number }>()
  expect((await call('PATCH', `/dispatcher/${id}`, { endpoint_name: 'pbx' })).status).toBe(409)
  expect((await call('PATCH', `/dispatcher/${id}`, { endpoint_name: 'pbx 2' })).status).toBe(200)
})

test("a name means the tenant's own row before the platform's, and never another tenant's", async () => {
  const { call, callAs } = await opened()
  const idOf = async (tenant?: string) => {
    const body = { name: 'default', ...(tenant !== undefined && { tenant }) }
    return (await call('POST', '/rate-plans', body)).data<{ id: number }>().id
  }
  const [platform, acme] = [await idOf(), await idOf('acme')]
  const planOf = async (name: string, tenant?: string) => {
    const body = { name, rate_plan: 'default', ...(tenant !== undefined && { tenant }) }
    return (await call('POST', '/customers', body)).data<{ rate_plan_id: number }>().rate_plan_id
  }
  expect(await planOf('a', 'acme')).toBe(acme)
  expect(await planOf('b', 'other')).toBe(platform)
  expect(await planOf('c')).toBe(platform)
  const foreign = await callAs('other', 'POST', '/customers', { name: 'd', rate_plan: 'default' })
  expect(foreign.body).toMatchObject({ details: [{ message: 'there is no rate_plan "default"' }] })
})

test('a name that several tenants have is refused where none is named', async () => {
  const { call } = await opened()
  for (const tenant of ['acme', 'other'])
    await call('POST', '/rate-plans', { name: 'gold', tenant })
  const rate = { rate_plan: 'gold', prefix: '49', rate_per_minute: 1 }
  const unclear = await call('POST', '/rates', rate)
  expect([unclear.status, unclear.body]).toMatchObject([
    400,
    { details: [{ path: 'rate_plan', message: 'several tenants have a rate_plan "gold"' }] },
  ])
  const clear = await call('POST', '/rates', { ...rate, tenant: 'other' })
  expect([clear.status, clear.body]).toMatchObject([201, { data: { rate_plan_id: 2 } }])
})

const ofTenant = (tenant: string, host: string) => ({
  rate_plans: [{ name: 'default', tenant }],
  rates: [{ rate_plan: 'default', tenant, prefix: '49', rate_per_minute: 1 }],
  customers: [{ name: 'Anna', tenant, rate_plan: 'default', email: 'anna@mail.example' }],
  dispatcher: [{ endpoint_name: `pbx of ${tenant}`, tenant, algorithm: 8, nodes: [{ host }] }],
  carriers: [
    { name: 'loop', tenant, customer: 'Anna', gateways: [{ host: host.replace('10.', '192.') }] },
  ],
  outbound_routes: [{ name: 'world', tenant, carrier: 'loop', customer: 'Anna' }],
})

test('a seed file of two tenants that call everything alike keeps them apart, also when it is repeated', async () => {
  const store = emptyStore()
  const [acme, other] = [ofTenant('acme', '10.0.0.1'), ofTenant('other', '10.0.0.2')]
  const file = {
    tenants: [{ slug: 'acme' }, { slug: 'other' }],
    ...Object.fromEntries(
      Object.entries(acme).map(([section, elements]) => [
        section,
        [...elements, ...other[section as keyof typeof other]],
      ]),
    ),
  }
  for (const time of [1, 2]) await seedFile(store, JSON.stringify(file), time)
  const owners = store.sqlite.prepare(`
    SELECT c.tenant_id AS carrier, u.tenant_id AS customer, p.tenant_id AS plan, r.tenant_id AS route, count(*) AS n
    FROM outbound_route r JOIN carrier c ON c.id = r.carrier_id JOIN customer u ON u.id = r.customer_id
    JOIN rate_plan p ON p.id = u.rate_plan_id JOIN rate ON rate.rate_plan_id = p.id GROUP BY r.id`)
  expect(owners.all()).toEqual([
    { carrier: 1, customer: 1, plan: 1, route: 1, n: 1 },
    { carrier: 2, customer: 2, plan: 2, route: 2, n: 1 },
  ])
})

test('people of two tenants log in with the same address, each to their own', async () => {
  const { call, request } = await opened()
  const email = 'anna@mail.example'
  const passwords = { acme: 'horse of acme', other: 'horse of other' }
  for (const [tenant, secret] of Object.entries(passwords))
    await call('POST', '/customers', { name: 'Anna', tenant, email, password: secret })
  const login = (secret: string, slug?: string) =>
    request('/api/client/auth/login', {
      body: { email, password: secret },
      headers: slug === undefined ? {} : { 'X-Tenant-Slug': slug },
    })
  const idOf = async (secret: string, slug?: string) =>
    (await login(secret, slug)).data<{ user: { id: number } } | undefined>()?.user.id
  expect([await idOf(passwords.acme), await idOf(passwords.other)]).toEqual([1, 2])
  expect((await login(passwords.acme, 'other')).status).toBe(401)
  await call('PATCH', '/customers/2', { password: passwords.acme })
  expect((await login(passwords.acme)).code).toBe('tenant_required')
  expect(await idOf(passwords.acme, 'other')).toBe(2)
})

onSqlite('one process')(
  'a namesake in a tenant neither locks out nor wears down the platform’s user',
  async () => {
    const { user, tenant, request, tick } = await openResources()
    const id = await tenant('acme')
    await user('root', 'admin')
    await user('root', 'auditor', id)
    const login = (secret: string, slug?: string) =>
      request('/auth/login', {
        body: { username: 'root', password: secret },
        headers: slug === undefined ? {} : { 'X-Tenant-Slug': slug },
      })
    const scopeOf = async (slug?: string) =>
      (await login(password, slug)).data<{ user: { role: string } }>().user.role
    expect([await scopeOf(), await scopeOf('acme')]).toEqual(['admin', 'auditor'])
    const codes: (string | undefined)[] = []
    for (let turn = 0; turn < 3; turn += 1) {
      // The limit of logins per address is another matter.
      tick(61_000)
      for (let guess = 0; guess < 2; guess += 1) codes.push((await login('a wrong guess')).code)
      await login(password, 'acme')
      await login(password)
    }
    expect(codes).toEqual([...Array<string>(5).fill('invalid_credentials'), 'login_locked'])
  },
)

onSqlite('one process')(
  'the password of a namesake is no free guess at that of the platform’s user',
  async () => {
    const { user, tenant, call, callAs, request, tick } = await openResources()
    const id = await tenant('acme')
    await user('root', 'admin')
    await user('root', 'auditor', id)
    const login = (secret: string, from?: string) =>
      request('/auth/login', {
        body: { username: 'root', password: secret },
        ...(from && { from }),
      })
    const namesake = (await call('GET', '/users?search=root')).data<{ id: number }[]>()[1]?.id
    for (let guess = 0; guess < 5; guess += 1) {
      const secret = `guess number ${guess}`
      expect(
        (await callAs('acme', 'PATCH', `/users/${namesake}`, { password: secret })).status,
      ).toBe(200)
      // It is the namesake's: so it is not the platform's.
      expect((await login(secret)).status).toBe(200)
    }
    expect((await login(password)).code).toBe('login_locked')
    expect((await login(password, '198.51.100.77')).status).toBe(200)
    tick(16 * 60_000)
    expect((await login(password)).status).toBe(200)
  },
)

test('slugs that no tenant has give no further guesses, and are not remembered at length', async () => {
  const { user, request } = await openResources()
  await user('root', 'admin')
  const login = (slug: string) =>
    request('/auth/login', {
      body: { username: 'root', password: 'a wrong guess' },
      headers: { 'X-Tenant-Slug': slug },
    })
  const long = 'x'.repeat(64)
  for (let guess = 0; guess < 5; guess += 1)
    expect((await login(`${long}${guess}`)).code).toBe('invalid_credentials')
  expect((await login(`${long}6`)).code).toBe('login_locked')
})

test('a 409 that a set or an agent is in use names no route of the platform', async () => {
  const { call, callAs, store } = await opened()
  const set = await callAs('acme', 'POST', '/dispatcher', {
    endpoint_name: 'pbx',
    algorithm: 8,
    nodes: [{ host: '10.0.0.1' }],
  })
  const { id, set_id } = set.data<{ id: number; set_id: number }>()
  const route = {
    name: 'secret route',
    target_type: 'set' as const,
    target: String(set_id),
    created_at: 0,
  }
  await execute(store, store.db.insertInto('inbound_route').values(route))
  const refused = await callAs('acme', 'DELETE', `/dispatcher/${id}`)
  expect([refused.status, refused.text.includes('secret route')]).toEqual([409, false])
  expect((await call('DELETE', `/dispatcher/${id}`)).text).toContain('secret route')
})
