import { expect, test } from 'vitest'
import { openControl } from '../../support/control.ts'
import { readRow } from '../../support/stored.ts'

const rows = [
  ['/api/v1/rate-plans', 'rate_plan', { name: 'gold' }],
  ['/api/v1/customers', 'customer', { name: 'luna' }],
  ['/api/v1/outbound-routes', 'outbound_route', { name: 'no', mode: 'block', prefix: '49' }],
] as const

async function open() {
  const api = await openControl()
  await api.tenant('acme', ['acme.example'])
  const root = await api.key({ name: 'root' })
  const ofAcme = await api.key({ tenant_scope: 'tenant', tenant_slug: 'acme', name: 'acme' })
  const make = async (path: string, body: object, token = root) => {
    const answer = await api.request(path, { token, body })
    return { status: answer.status, ...answer.data<{ id: number }>() }
  }
  const patch = (path: string, id: number, body: object, token = root) =>
    api.request(`${path}/${id}`, { method: 'PATCH', token, body })
  return { api, ofAcme, make, patch }
}

test.each(rows)('%s: a margin has one spelling, and null takes it back', async (path, _, body) => {
  const { make, patch } = await open()
  const made = await make(path, { ...body, loss_protection: 'refuse', min_margin: '0.0100' })
  expect(made).toMatchObject({ status: 201, loss_protection: 'refuse', min_margin: '0.01' })
  const changed = await patch(path, made.id, { min_margin: '2.50%' })
  expect(changed.data()).toMatchObject({ loss_protection: 'refuse', min_margin: '2.5%' })
  const alone = await patch(path, made.id, { loss_protection: null })
  expect(alone.body).toMatchObject({ statusCode: 400, details: [{ path: 'min_margin' }] })
  const none = { loss_protection: null, min_margin: null }
  expect((await patch(path, made.id, none)).data()).toMatchObject(none)
})

test.each([
  [{ loss_protection: 'always' }, 'loss_protection'],
  [{ loss_protection: true }, 'loss_protection'],
  [{ loss_protection: 'warn', min_margin: 0.01 }, 'min_margin'],
  [{ loss_protection: 'warn', min_margin: '101%' }, 'min_margin'],
  [{ loss_protection: 'warn', min_margin: '-0.01' }, 'min_margin'],
  [{ loss_protection: 'warn', min_margin: '٥%' }, 'min_margin'],
  [{ min_margin: '5%' }, 'min_margin'],
])('%j is refused', async (fields, wrong) => {
  const { api } = await open()
  const token = await api.key({ name: 'other' })
  for (const [path, , body] of rows) {
    const answer = await api.request(path, { token, body: { ...body, ...fields } })
    expect(answer.body).toMatchObject({ statusCode: 400, details: [{ path: wrong }] })
  }
})

test.each(rows)(
  '%s: a tenant does not change what the platform has set',
  async (path, table, body) => {
    const { api, ofAcme, make, patch } = await open()
    const writer = async (id: number) =>
      (
        await readRow<{ is_loss_by_tenant: number }>(
          api.store,
          `SELECT is_loss_by_tenant FROM ${table} WHERE id = ${id}`,
        )
      )?.is_loss_by_tenant
    const given = { ...body, tenant: 'acme', loss_protection: 'refuse' }
    const byPlatform = await make(path, given)
    expect(await writer(byPlatform.id)).toBe(0)
    for (const change of [{ loss_protection: 'never' }, { min_margin: '5%' }]) {
      const refused = await patch(path, byPlatform.id, change, ofAcme)
      expect([refused.status, refused.code]).toEqual([403, 'platform_only'])
    }
    expect((await patch(path, byPlatform.id, { name: 'renamed' }, ofAcme)).status).toBe(200)
    expect(await writer(byPlatform.id)).toBe(0)
    const own = await make(path, { ...body, loss_protection: 'warn' }, ofAcme)
    expect(await writer(own.id)).toBe(1)
    expect((await patch(path, own.id, { loss_protection: 'refuse' }, ofAcme)).status).toBe(200)
    expect((await patch(path, own.id, { name: 'again' })).status).toBe(200)
    expect(await writer(own.id)).toBe(1)
    expect((await patch(path, own.id, { loss_protection: 'strict' })).status).toBe(200)
    expect(await writer(own.id)).toBe(0)
  },
)
