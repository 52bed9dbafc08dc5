import { expect, test } from 'vitest'
import { openResources } from '../../support/resources.ts'

const gateways = [{ host: '198.51.100.1' }]

/** Every resource that belongs to a tenant, with a body and a harmless change. */
const resources = [
  [
    '/dispatcher',
    { endpoint_name: 'a', algorithm: 8, nodes: [{ host: '192.0.2.1' }] },
    { algorithm: 4 },
  ],
  ['/routing/carriers', { name: 'a', gateways }, { max_calls: 1 }],
  ['/outbound-routes', { name: 'a', mode: 'block' }, { prefix: '9' }],
  ['/inbound-routes', { name: 'a', set: 'own set' }, { prefix: '9' }],
  [
    '/telephony/ai-agents',
    { name: 'a', extension: '700', sip_uri: 'sip:a@192.0.2.1' },
    { max_calls: 1 },
  ],
  ['/customers', { name: 'a' }, { max_cps: 1 }],
  ['/rate-plans', { name: 'a' }, { decimals: 2 }],
  ['/rates', { rate_plan: 'own plan', prefix: '1', rate_per_minute: 1 }, { connect_fee: 1 }],
] as const

async function twoTenants() {
  const control = await openResources()
  await control.tenant('acme')
  await control.tenant('beta')
  const set = { endpoint_name: 'own set', algorithm: 8, nodes: [{ host: '192.0.2.1' }] }
  await control.callAs('acme', 'POST', '/dispatcher', set)
  await control.callAs('acme', 'POST', '/rate-plans', { name: 'own plan' })
  return control
}

test.each(resources)(
  'a row of %s is made, shown, changed and removed under one address',
  async (path, body, change) => {
    const { call, callAs } = await twoTenants()
    const created = await callAs('acme', 'POST', `/api/v1${path}`, body)
    const location = created.headers.get('location') ?? ''
    expect(location).toBe(`/api/v1${path}/${created.data<{ id: number }>().id}`)
    expect((await call('GET', location)).data()).toEqual(created.data())
    const changed = await call('PATCH', location, change)
    expect((await call('GET', location)).data()).toEqual(changed.data())
    expect((await call('DELETE', location)).body).toMatchObject({
      success: true,
      data: { deleted: true },
    })
    expect((await call('GET', location)).status).toBe(404)
    expect((await call('DELETE', location)).status).toBe(404)
  },
)

test.each(resources)('an empty change of %s changes nothing', async (path, body) => {
  const { callAs } = await twoTenants()
  const created = await callAs('acme', 'POST', path, body)
  const same = await callAs('acme', 'PATCH', `${path}/${created.data<{ id: number }>().id}`, {})
  expect(same.data()).toEqual(created.data())
})

test.each([
  ['/outbound-routes', { name: 'b', carrier_id: 99 }, 'carrier_id'],
  ['/outbound-routes', { name: 'b', carrier: 'unknown' }, 'carrier'],
  ['/outbound-routes', { name: 'b' }, 'carrier'],
  ['/inbound-routes', { name: 'b', set_id: 99 }, 'set_id'],
  ['/routing/carriers', { name: 'b', gateways, inbound_set_id: 99 }, 'inbound_set_id'],
  ['/routing/carriers', { name: 'b', gateways, customer_id: 99 }, 'customer_id'],
  ['/customers', { name: 'b', rate_plan_id: 99 }, 'rate_plan_id'],
  ['/rates', { rate_plan_id: 99, prefix: '1', rate_per_minute: 1 }, 'rate_plan_id'],
])('what %s does not find is told under the name that %j gives it', async (path, body, name) => {
  const { callAs } = await twoTenants()
  const answer = await callAs('acme', 'POST', path, body)
  expect(answer.body).toMatchObject({ statusCode: 400, details: [{ path: name }] })
})
