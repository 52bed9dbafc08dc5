/** `subscriptions/listen`: a client is told that what it sees of a resource has changed. */
import { expect, onTestFinished, test } from 'vitest'
import { connectClient } from '../../../support/mcp-client.ts'
import { openToolRig, storeRecord, type ToolRig } from '../../../support/tools-rig.ts'
import { readColumn, runSql } from '../../../support/stored.ts'
import { eventually } from '../../../support/waiting.ts'

const nodes = 'tollgate://nodes'

/** A client that listens to the nodes, and what it has been told. */
async function listener(rig: ToolRig, token: string, uris: readonly string[] = [nodes]) {
  const client = await connectClient(rig.app, token, 'modern')
  onTestFinished(() => client.close())
  const told: string[] = []
  client.setNotificationHandler('notifications/resources/updated', ({ params }) => {
    told.push(params.uri)
  })
  const subscription = await client.listen({ resourceSubscriptions: [...uris] })
  return { client, told, subscription }
}

const setState = (rig: ToolRig, state: string) =>
  rig.tool('set_dispatcher_state', {
    state,
    setId: 1,
    destination: 'sip:10.0.0.2:5060;transport=udp',
  })

const ofTenant = (slug: string) => ({ tenant_scope: 'tenant', tenant_slug: slug })

test('a listener hears once of each change that it sees, and no other tenant does', async () => {
  const rig = await openToolRig()
  const all = await listener(rig, rig.root)
  const owner = await listener(rig, await rig.key(ofTenant('acme')))
  const stranger = await listener(rig, await rig.key(ofTenant('other')))
  await rig.subscriptions.poll()
  expect(await setState(rig, 'inactive')).toMatchObject({ status: 200 })
  await rig.subscriptions.poll()
  await rig.subscriptions.poll()
  await eventually(() => expect([all.told, owner.told]).toEqual([[nodes], [nodes]]))
  await setState(rig, 'active')
  await rig.subscriptions.poll()
  await eventually(() => expect(owner.told).toEqual([nodes, nodes]))
  // What it would have been told came before what the others have been told.
  expect(stranger.told).toEqual([])
})

test('a body that does not end is refused at a megabyte, not kept in memory', async () => {
  const rig = await openToolRig()
  let pieces = 0
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      pieces += 1
      controller.enqueue(new Uint8Array(65_536).fill(32))
      if (pieces === 512) controller.close()
    },
  })
  const token = await rig.key({ scopes: ['mcp:read'] })
  const headers = {
    authorization: `Bearer ${token}`,
    'content-type': 'application/json',
    'mcp-method': 'subscriptions/listen',
    'mcp-protocol-version': '2026-07-28',
    accept: 'application/json, text/event-stream',
  }
  const answer = await rig.app.request('/mcp', { method: 'POST', headers, body })
  expect(answer.status).toBe(413)
  expect(pieces).toBeLessThan(256)
})

test('a stream ends when its key is revoked, loses a scope of a resource, or the process stops', async () => {
  const rig = await openToolRig()
  const revoked = await listener(rig, await rig.key({ name: 'revoked' }))
  const narrowed = await listener(rig, await rig.key({ name: 'narrowed' }))
  const kept = await listener(rig, await rig.key({ name: 'kept' }))
  await rig.tool('revoke_sbc_api_key', { identifier: 'revoked' })
  const narrow = `UPDATE application_key SET scopes = '["mcp:read"]' WHERE name = 'narrowed'`
  await runSql(rig.store, narrow)
  await rig.access.keys.atomically(() => Promise.resolve())
  await rig.subscriptions.poll()
  await revoked.subscription.closed
  await narrowed.subscription.closed
  expect(rig.subscriptions.size).toBe(1)
  await setState(rig, 'inactive')
  await rig.subscriptions.poll()
  await eventually(() => expect(kept.told).toEqual([nodes]))
  expect([revoked.told, narrowed.told]).toEqual([[], []])
  rig.subscriptions.close()
  await kept.subscription.closed
  expect(rig.subscriptions.size).toBe(0)
})

test('a resource of which the key lacks a scope cannot be listened to', async () => {
  const rig = await openToolRig()
  const token = await rig.key({ scopes: ['mcp:read', 'calls:read'] })
  await expect(listener(rig, token)).rejects.toThrow(/dispatcher:read/)
  expect(rig.subscriptions.size).toBe(0)
})

test('one credential has sixteen streams, and closing one makes room', async () => {
  const rig = await openToolRig()
  const [first] = await Promise.all(Array.from({ length: 16 }, () => listener(rig, rig.root)))
  await expect(listener(rig, rig.root)).rejects.toThrow(/as many subscriptions as it may/)
  await listener(rig, await rig.key({ name: 'another' }))
  await first?.subscription.close()
  await eventually(() => expect(rig.subscriptions.size).toBe(16))
  await listener(rig, rig.root)
})

test('an anomaly is told within a minute to a client that sees its calls', async () => {
  const rig = await openToolRig()
  const anomalies = 'tollgate://anomalies'
  const owner = await listener(rig, await rig.key(ofTenant('acme')), [anomalies])
  const stranger = await listener(rig, await rig.key(ofTenant('other')), [anomalies])
  await rig.subscriptions.poll()
  const tenantId = (
    await readColumn<number>(rig.store, `SELECT id FROM tenant WHERE slug = 'acme'`)
  )[0]
  for (let index = 10; index < 40; index += 1)
    await storeRecord(rig, tenantId ?? null, `55555555-5555-4555-8555-5555555555${index}`, {
      disposition: 'FAILED',
      sip_code: 402,
      denial_code: 'insufficient_funds',
      billsec: 0,
    })
  await rig.subscriptions.poll()
  expect(owner.told).toEqual([])
  rig.tick(60_000)
  await rig.subscriptions.poll()
  await eventually(() => expect(owner.told).toEqual([anomalies]))
  expect(stranger.told).toEqual([])
})
