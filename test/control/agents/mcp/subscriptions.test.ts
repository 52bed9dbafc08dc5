/** `subscriptions/listen`: a client is told that what it sees of a resource has changed. */
import { expect, onTestFinished, test } from 'vitest'
import { connectClient, newClient } from '../../../support/mcp-client.ts'
import { openToolRig, storeRecord, type ToolRig } from '../../../support/tools-rig.ts'
import { readColumn, runSql } from '../../../support/stored.ts'
import { eventually } from '../../../support/waiting.ts'
import { type Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { McpSubscriptions } from '../../../../control/agents/mcp/subscriptions.ts'
import { apiWith } from '../../../support/control.ts'
import type { ServedApp } from '../../../support/in-memory-http.ts'

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
  // Its notice would have come before those of the others.
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

interface Subscriber {
  readonly client: Client
  readonly transport: StreamableHTTPClientTransport
  readonly told: string[]
}

/** The official client of 2025-11-25, which opens a stream by itself once it has a session. */
async function connect(app: ServedApp, token: string): Promise<Subscriber> {
  const client = newClient('legacy')
  const told: string[] = []
  client.setNotificationHandler('notifications/resources/updated', ({ params }) => {
    told.push(params.uri)
  })
  const transport = new StreamableHTTPClientTransport(new URL('http://localhost/mcp'), {
    requestInit: { headers: { Authorization: `Bearer ${token}` } },
    fetch: async (url, init) => app.request(String(url), init),
  })
  await client.connect(transport)
  onTestFinished(() => client.close())
  return { client, transport, told }
}

/** The same, and its stream is open. */
async function connectReading(rig: ToolRig, token: string): Promise<Subscriber> {
  const before = rig.subscriptions.size
  const subscriber = await connect(rig.app, token)
  await eventually(() => expect(rig.subscriptions.size).toBe(before + 1))
  return subscriber
}

const drainNode = async (rig: ToolRig, state: string): Promise<void> => {
  const destination = 'sip:10.0.0.2:5060;transport=udp'
  expect(await rig.tool('set_dispatcher_state', { state, setId: 1, destination })).toMatchObject({
    status: 200,
  })
}

/** One request of a client that is written by hand. */
const ask = (
  app: ServedApp,
  token: string,
  session: string | undefined,
  { method = 'POST', body = { jsonrpc: '2.0', id: 1, method: 'tools/list' }, accept = both } = {},
): Promise<Response> =>
  app.request('/mcp', {
    method,
    headers: {
      authorization: `Bearer ${token}`,
      accept,
      ...(method === 'POST' && { 'content-type': 'application/json' }),
      ...(session !== undefined && { 'mcp-session-id': session }),
    },
    ...(method === 'POST' && { body: JSON.stringify(body) }),
  })

const both = 'application/json, text/event-stream'

const initialize = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: {
    protocolVersion: '2025-06-18',
    capabilities: {},
    clientInfo: { name: 'by hand', version: '1' },
  },
}

test('a client of 2025 subscribes, hears of a change once, reads it, and unsubscribes', async () => {
  const rig = await openToolRig()
  const { client, told } = await connectReading(rig, rig.root)
  expect(client.getServerCapabilities()?.resources?.subscribe).toBe(true)
  await client.subscribeResource({ uri: nodes })
  // This happens at once, before anything has looked at the nodes for this session.
  await drainNode(rig, 'inactive')
  await rig.subscriptions.poll()
  await rig.subscriptions.poll()
  await eventually(() => expect(told).toEqual([nodes]))
  const { contents } = await client.readResource({ uri: nodes })
  expect((contents[0] as { text: string }).text).toContain('"inactive"')
  await client.unsubscribeResource({ uri: nodes })
  await drainNode(rig, 'active')
  await rig.subscriptions.poll()
  await client.subscribeResource({ uri: nodes })
  await drainNode(rig, 'inactive')
  await rig.subscriptions.poll()
  await eventually(() => expect(told).toEqual([nodes, nodes]))
})

test('a session is its credential’s own, sees what that sees, and ends by DELETE', async () => {
  const rig = await openToolRig()
  const { client, transport } = await connectReading(rig, rig.root)
  const session = transport.sessionId
  const ofOther = await rig.key({ tenant_scope: 'tenant', tenant_slug: 'other' })
  const stranger = await connectReading(rig, ofOther)
  await stranger.client.subscribeResource({ uri: nodes })
  for (const method of ['POST', 'GET', 'DELETE'])
    expect((await ask(rig.app, ofOther, session, { method })).status).toBe(404)
  await drainNode(rig, 'inactive')
  await rig.subscriptions.poll()
  expect(stranger.told).toEqual([])

  await transport.terminateSession()
  const gone = await ask(rig.app, rig.root, session)
  expect([gone.status, await gone.json()]).toEqual([
    404,
    { jsonrpc: '2.0', id: null, error: { code: -32_001, message: 'Session not found' } },
  ])
  expect(rig.subscriptions.size).toBe(1)
  await client.close()
})

test('any instance answers a session and tells of its changes; the newest stream takes the place of another', async () => {
  const rig = await openToolRig()
  const { client, transport, told } = await connectReading(rig, rig.root)
  const other = apiWith(rig.deps)
  const subscribe = { jsonrpc: '2.0', id: 2, method: 'resources/subscribe', params: { uri: nodes } }
  const answer = await ask(other, rig.root, transport.sessionId, { body: subscribe })
  expect([answer.status, await answer.text()]).toEqual([200, expect.stringContaining('"result"')])
  await drainNode(rig, 'inactive')
  await rig.subscriptions.poll()
  await eventually(() => expect(told).toEqual([nodes]))
  const stream = await ask(other, rig.root, transport.sessionId, { method: 'GET' })
  expect(stream.status).toBe(200)
  await rig.subscriptions.poll()
  expect(rig.subscriptions.size).toBe(0)
  await stream.body?.cancel()
  // One that no instance knows: the client begins again, and finds everything as before.
  await client.close()
  expect((await ask(other, rig.root, 'of another time')).status).toBe(404)
  const again = await connect(other, rig.root)
  expect((await again.client.listTools()).tools.length).toBeGreaterThan(30)
})

test('the stream of a key that is suspended ends, and so does its session; a scope that is lost is told of nothing more', async () => {
  const rig = await openToolRig()
  const suspended = await connectReading(rig, await rig.key({ name: 'suspended' }))
  const narrowed = await connectReading(rig, await rig.key({ name: 'narrowed' }))
  await suspended.client.subscribeResource({ uri: nodes })
  await narrowed.client.subscribeResource({ uri: nodes })
  await rig.tool('suspend_api_key', { identifier: 'suspended', reason: 'it may have leaked' })
  await runSql(
    rig.store,
    `UPDATE application_key SET scopes = '["mcp:read"]' WHERE name = 'narrowed'`,
  )
  await rig.access.keys.atomically(() => Promise.resolve())
  await drainNode(rig, 'inactive')
  await rig.subscriptions.poll()
  expect([rig.subscriptions.size, suspended.told, narrowed.told]).toEqual([1, [], []])
  expect(await readColumn(rig.store, 'SELECT count(*) FROM mcp_session')).toEqual([1])
})

test('sessions are bounded: one more client of a key does without, as all did before; an idle one makes room, and ends', async () => {
  const rig = await openToolRig()
  const begin = async (token: string) => {
    const answer = await ask(rig.app, token, undefined, { body: initialize })
    return [answer.headers.get('mcp-session-id'), await answer.text()] as const
  }
  const [first] = await begin(rig.root)
  for (let count = 1; count < 16; count += 1) expect((await begin(rig.root))[0]).not.toBeNull()
  const [none, said] = await begin(rig.root)
  expect([none, said.includes('"subscribe"')]).toEqual([null, false])
  expect((await ask(rig.app, rig.root, undefined)).status).toBe(200)
  expect((await begin(await rig.key({ name: 'another' })))[0]).not.toBeNull()
  rig.tick(6 * 60_000)
  expect((await ask(rig.app, rig.root, first ?? '')).status).toBe(200)
  expect((await begin(rig.root))[0]).not.toBeNull()
  expect((await ask(rig.app, rig.root, first ?? '')).status).toBe(200)
  rig.tick(31 * 60_000)
  expect((await ask(rig.app, rig.root, first ?? '')).status).toBe(404)
  await begin(rig.root)
  expect(await readColumn(rig.store, 'SELECT count(*) FROM mcp_session')).toEqual([1])
})

test('what changed while no stream was open is told on the next one, which is kept alive', async () => {
  const rig = await openToolRig()
  const begun = await ask(rig.app, rig.root, undefined, { body: initialize })
  const session = begun.headers.get('mcp-session-id') ?? ''
  await begun.text()
  const subscribe = { jsonrpc: '2.0', id: 2, method: 'resources/subscribe', params: { uri: nodes } }
  await (await ask(rig.app, rig.root, session, { body: subscribe })).text()
  await drainNode(rig, 'inactive')
  const stream = await ask(rig.app, rig.root, session, {
    method: 'GET',
    accept: 'text/event-stream',
  })
  expect(stream.headers.get('content-type')).toBe('text/event-stream')
  await rig.subscriptions.poll()
  const reader = stream.body?.pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  while (!text.includes('notifications/resources/updated'))
    text += (await reader?.read())?.value ?? ''
  expect(text).toContain(': open\n\n')
  expect(text).toContain('"params":{"uri":"tollgate://nodes"}')
  rig.tick(15_000)
  await rig.subscriptions.poll()
  while (!text.includes(': keepalive')) text += (await reader?.read())?.value ?? ''
  await reader?.cancel()
})

test('a stream whose reader does not read is cut off after 32 notifications', async () => {
  const subscriptions = new McpSubscriptions(() => 0)
  let version = 0
  subscriptions.openSession({
    actor: 'key:1',
    tenantId: null,
    sees: '',
    session: 'one',
    isStillAdmitted: () => Promise.resolve(true),
    watched: () => Promise.resolve([{ uri: nodes, everyMs: 0, seen: '0' }]),
    versionOf: () => Promise.resolve(String((version += 1))),
  })
  for (let look = 0; look < 32; look += 1) await subscriptions.poll()
  expect(subscriptions.size).toBe(1)
  await subscriptions.poll()
  expect(subscriptions.size).toBe(0)
})
