import { expect, test } from 'vitest'
import type { OutgoingEvent } from '../../../schema/contracts/engine.ts'
import { all } from '../../../schema/sql/query.ts'
import { WebhookOutbox } from '../../../control/webhooks/outbox.ts'
import { openControl } from '../../support/control.ts'
import { readRows } from '../../support/stored.ts'

const event = (tenantId: number | null, carrierOf: number | null): OutgoingEvent => ({
  type: 'call.ended',
  tenantId,
  data: { call_uuid: 'u', carrier_cost: null },
  confidential: { tenantId: carrierOf, data: { carrier_cost: 0.25 } },
})

/** What the endpoints of the platform, of acme and of beta get. */
async function delivered(tenant: 'acme' | 'none', carrier: 'platform' | 'acme' | 'beta') {
  const control = await openControl()
  const root = await control.key()
  const ids: Record<string, number> = {}
  for (const slug of ['acme', 'beta']) ids[slug] = await control.tenant(slug)
  for (const slug of ['platform', 'acme', 'beta']) {
    const token =
      slug === 'platform'
        ? root
        : await control.key({ name: slug, tenant_scope: 'tenant', tenant_slug: slug })
    const body = { url: `https://${slug}.example/hook`, events: ['call.ended'] }
    const made = await control.request('/api/v1/webhooks', { token, body })
    expect([slug, made.status]).toEqual([slug, 201])
  }
  const outbox = new WebhookOutbox({
    store: control.store,
    now: () => 0,
    steadyNow: () => 0,
    randomBytes: (size) => Buffer.alloc(size),
    onWrite: () => undefined,
  })
  const { store } = control
  outbox.setEndpoints(await all(store, store.db.selectFrom('webhook_endpoint').selectAll()))
  await outbox.writeAll([event(ids[tenant] ?? null, ids[carrier] ?? null)])
  const found = await readRows<{ url: string; body: string }>(
    control.store,
    `SELECT url, body FROM webhook_delivery AS d JOIN webhook_event AS e ON e.id = d.event_id
      JOIN webhook_endpoint AS w ON w.id = d.endpoint_id ORDER BY w.id`,
  )
  const told: Record<string, unknown> = {}
  for (const { url, body } of found) {
    const { data } = JSON.parse(body) as { data: { carrier_cost: unknown } }
    told[/\/\/(\w+)/.exec(url)?.[1] ?? ''] = data.carrier_cost
  }
  return told
}

test('what a carrier takes is told to its owner and the platform, each once; others get null', async () => {
  expect(await delivered('acme', 'platform')).toEqual({ platform: 0.25, acme: null })
  expect(await delivered('acme', 'acme')).toEqual({ platform: 0.25, acme: 0.25 })
  // The owner of a carrier is not told of calls that are not its own.
  expect(await delivered('acme', 'beta')).toEqual({ platform: 0.25, acme: null })
  expect(await delivered('none', 'acme')).toEqual({ platform: 0.25 })
})
