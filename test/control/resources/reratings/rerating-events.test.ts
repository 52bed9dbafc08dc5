/** Who is told that past calls were priced anew. */
import { expect, test } from 'vitest'
import { openReratingRig } from '../../../support/rerating-rig.ts'
import { readRows } from '../../../support/stored.ts'

const hook = { url: 'https://books.example/hook', events: ['rerating.completed'] }

interface Told {
  readonly data: { readonly id: number; readonly state: string; readonly changed: number }
  readonly type: string
}

test('the end of a re-rating, and of its undoing, is told once, to the owner of the plan', async () => {
  const rig = await openReratingRig()
  const acme = await rig.tenant('acme')
  await rig.tenant('other')
  const ofPlatform = (await rig.call('POST', '/webhooks', hook)).data<{ id: number }>().id
  const ofAcme = (await rig.callAs('acme', 'POST', '/webhooks', hook)).data<{ id: number }>().id
  expect(await rig.callAs('other', 'POST', '/webhooks', hook)).toMatchObject({ status: 201 })
  const told = async () => {
    const rows = await readRows<{ body: string; endpoint: number }>(
      rig.store,
      `SELECT event.body, delivery.endpoint_id AS endpoint FROM webhook_delivery AS delivery
       JOIN webhook_event AS event ON event.id = delivery.event_id
       ORDER BY event.id, delivery.endpoint_id`,
    )
    return rows.map(({ body, endpoint }) => {
      const { type, data } = JSON.parse(body) as Told
      expect(type).toBe('rerating.completed')
      return { endpoint, state: data.state, id: data.id, changed: data.changed }
    })
  }
  const make = (path: string, body: object) => rig.callAs('acme', 'POST', path, body)
  await make('/rate-plans', { name: 'own', currency: 'USD' })
  await make('/rates', { rate_plan: 'own', prefix: '49', rate_per_minute: '0.03' })
  const made = await make('/customers', { name: 'c', rate_plan: 'own', currency: 'USD' })
  const { id: customerId } = made.data<{ id: number }>()
  await rig.talk({ customerId, tenantId: acme }, 60)
  await rig.talk({}, 60)
  await rig.correct()

  const bought = await rig.rerate('bought')
  const expected = [{ endpoint: ofPlatform, state: 'done', id: bought.id, changed: 2 }]
  expect(await told()).toEqual(expected)
  const begun = await make('/rates/reratings', { ...rig.order('sold'), rate_plan: 'own' })
  const own = await rig.ended(begun.data<{ id: number }>().id)
  await rig.callAs('acme', 'POST', `/rates/reratings/${own.id}/undo`)
  await rig.ended(own.id)
  for (const state of ['done', 'undone'])
    for (const endpoint of [ofPlatform, ofAcme])
      expected.push({ endpoint, state, id: own.id, changed: 1 })
  await rig.undo(bought.id)
  await rig.ended(bought.id)
  expected.push({ endpoint: ofPlatform, state: 'undone', id: bought.id, changed: 2 })
  expect(await told()).toEqual(expected)
})

test('who may not read rates is not told of re-ratings', async () => {
  const rig = await openReratingRig()
  const webhooks = ['webhooks:read', 'webhooks:write'] as const
  const blind = await rig.key({ scopes: [...webhooks, 'cdrs:read'] })
  expect(await rig.request('/webhooks', { token: blind, body: hook })).toMatchObject({
    status: 403,
  })
  const seeing = await rig.key({ scopes: [...webhooks, 'rates:read'] })
  expect(await rig.request('/webhooks', { token: seeing, body: hook })).toMatchObject({
    status: 201,
  })
})
