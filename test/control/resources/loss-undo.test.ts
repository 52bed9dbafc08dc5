/** Who has set a loss protection, after a change of it was undone. */
import { expect, test } from 'vitest'
import { openToolRig } from '../../support/tools-rig.ts'
import { readRow } from '../../support/stored.ts'

test.each([
  ['/api/v1/rate-plans', 'rate_plan', { name: 'gold' }],
  ['/api/v1/customers', 'customer', { name: 'luna' }],
  ['/api/v1/outbound-routes', 'outbound_route', { name: 'no', mode: 'block', prefix: '49' }],
] as const)('%s: what the platform undoes is the tenant’s again', async (path, table, body) => {
  const rig = await openToolRig()
  const ofAcme = await rig.key({ tenant_scope: 'tenant', tenant_slug: 'acme', name: 'own' })
  const send = (method: string, at: string, sent: object, token = rig.root) =>
    rig.request(at, { method, token, body: sent })
  const made = await send('POST', path, { ...body, loss_protection: 'warn' }, ofAcme)
  const { id } = made.data<{ id: number }>()
  const byTenant = async () =>
    (
      await readRow<{ is_loss_by_tenant: number }>(
        rig.store,
        `SELECT is_loss_by_tenant FROM ${table} WHERE id = ${id}`,
      )
    )?.is_loss_by_tenant
  const changed = await send('PATCH', `${path}/${id}`, { loss_protection: 'refuse' })
  expect([changed.status, await byTenant()]).toEqual([200, 0])
  const change = changed.headers.get('x-change-id') ?? ''
  const reason = { reason: 'a mistake' }
  const asTenant = await send('POST', `/api/v1/changes/${change}/undo`, reason, ofAcme)
  expect([403, 404]).toContain(asTenant.status)
  expect(await byTenant()).toBe(0)
  const undone = await send('POST', `/api/v1/changes/${change}/undo`, reason)
  expect([undone.status, await byTenant()]).toEqual([200, 1])
  const own = await send('PATCH', `${path}/${id}`, { loss_protection: null }, ofAcme)
  expect(own.status).toBe(200)
})
