/**
 * The fields that a tenant's key may write: each field of each body in the OpenAPI document has a
 * rule here, and is tried with what belongs to others. A new field without a rule fails the test
 * (GUIDE.md, "Who owns what").
 */
import { beforeAll, expect, test } from 'vitest'
import { documentOf } from '../support/documented.ts'
import { bodiesOf, fillOwned, ownPath, stored } from '../support/owned-world.ts'
import { CANARY, collectionOf, operations, plain, platform } from '../support/ownership-rules.ts'
import { openResources, type TestResources } from '../support/resources.ts'

let world: TestResources
let documented: ReturnType<typeof bodiesOf>
let ownKey = ''

beforeAll(async () => {
  world = await openResources()
  documented = bodiesOf(documentOf(world.app).document)
  ;({ ownKey } = await fillOwned(world))
})

test('every writable field of every operation has a rule', () => {
  const missing = documented.flatMap(({ method, path, fields }) => {
    const rules = operations[collectionOf(path)]?.rules ?? {}
    const unruled = [...fields.keys()].filter((field) => !(field in rules))
    return unruled.map((field) => `${method} ${path} ${field}`)
  })
  expect(missing).toEqual([])
  const known = new Set(documented.map(({ path }) => collectionOf(path)))
  expect(Object.keys(operations).filter((path) => !known.has(path))).toEqual([])
})

test("a tenant's key names nothing of others in any field, and is told nothing of them", async () => {
  const before = await stored(world)
  for (const { method, path, fields } of documented) {
    const { body, rules } = operations[collectionOf(path)] ?? { body: {}, rules: {} }
    for (const field of fields.keys()) {
      const rule = rules[field] ?? plain
      const attempts = rule === platform ? [{ [field]: sampleOf(field) }] : rule
      if (attempts === plain || typeof attempts === 'string') continue
      for (const attempt of attempts) {
        const sent = method === 'post' ? { ...body, ...attempt } : attempt
        const what = `${method} ${path} ${JSON.stringify(attempt)}`
        const answer = await world.callAs('own', method.toUpperCase(), ownPath(path, ownKey), sent)
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
  expect(after).toEqual(before)
})

test('the same bodies without what is of others are accepted', async () => {
  for (const [path, { body }] of Object.entries(operations)) {
    if (path.includes('{') || path.startsWith('/telephony/') || path.startsWith('/pbx/calls'))
      continue
    if (path === '/stir/authorities') continue
    // A preview stores nothing, and answers 200.
    if (path.endsWith('/preview')) continue
    if (path.startsWith('/auth/') || path === '/sign-in-policy') continue
    if (path === '/tenants' || path === '/guard/bans') continue
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

const samples: Readonly<Record<string, unknown>> = {
  time_zone: 'Europe/Berlin',
  emergency: true,
  is_active: false,
  verified_since: '2026-01-01T00:00:00Z',
  attestation: 'A',
  domains: ['own.example'],
  numbers: ['1'],
  duration_seconds: 60,
  media: 'bypass',
  media_profile: 'auto',
  codecs: null,
  dtmf: 'auto',
}

const sampleOf = (field: string): unknown => (field in samples ? samples[field] : 'x')
