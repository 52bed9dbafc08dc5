import { randomBytes } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { Webhook } from 'standardwebhooks'
import { expect, test } from 'vitest'
import type { HookAnswer, HookCall, InviteDecision } from '../../../../schema/contracts/hooks.ts'
import { newSecret } from '../../../../schema/secrets/webhook-signature.ts'
import {
  deciding,
  hookCall,
  type RoutingWebhooksRig,
  secret,
  startReceiver,
  startRoutingWebhooks,
  webhookRecord,
} from '../../../support/routing-receiver.ts'

const ask = (
  { webhooks }: Pick<RoutingWebhooksRig, 'webhooks'>,
  call: Partial<HookCall> = {},
): Promise<HookAnswer<InviteDecision>> => webhooks.ask('onInvite', hookCall(call))

const sourceOf = (given: Partial<HookCall['source']>): Pick<HookCall, 'source'> => ({
  source: { ...hookCall().source, ...given },
})

test('the receiver gets the call as JSON, signed as the standard says, and its decision holds', async () => {
  const receiver = await startReceiver(deciding({ to: '4950', tags: { crm: 'gold' } }))
  const rig = await startRoutingWebhooks([webhookRecord({ url: receiver.url })])
  expect(await ask(rig)).toEqual({
    kind: 'decided',
    decision: { to: '4950', tags: { crm: 'gold' } },
    by: 'routing webhook 1',
    tenantId: null,
    fallback: 'continue',
  })
  const { body, headers } = receiver.questions[0] ?? { body: '', headers: {} }
  const read = new Webhook(secret).verify(body, headers as Record<string, string>)
  expect(read).toEqual({ type: 'call.invite', ...hookCall() })
  expect(headers).toMatchObject({
    'webhook-id': 'msg_uuid-1',
    'content-type': 'application/json',
    'accept-encoding': 'identity',
  })
})

test('while secrets overlap the request is signed by both', async () => {
  const receiver = await startReceiver(deciding({}))
  const fresh = newSecret(randomBytes)
  const previous = { secret, expiresAt: Date.now() + 60_000 }
  const url = receiver.url
  const rig = await startRoutingWebhooks([webhookRecord({ url, secret: fresh, previous })])
  await ask(rig)
  const { body, headers } = receiver.questions[0] ?? { body: '', headers: {} }
  for (const each of [secret, fresh])
    expect(new Webhook(each).verify(body, headers as Record<string, string>)).toBeDefined()
})

test('204 and an empty decision leave the call as it is', async () => {
  const nothing = await startReceiver((response) => response.writeHead(204).end())
  const empty = await startReceiver(deciding({}))
  for (const { url } of [nothing, empty])
    expect(await ask(await startRoutingWebhooks([webhookRecord({ url })]))).toEqual({
      kind: 'nothing',
    })
})

test('calls one after the other use one connection', async () => {
  const receiver = await startReceiver(deciding({ record: true }))
  const rig = await startRoutingWebhooks([webhookRecord({ url: receiver.url })])
  for (let call = 0; call < 20; call += 1) await ask(rig)
  expect([receiver.questions.length, receiver.connections()]).toEqual([20, 1])
})

test('an idle connection that the receiver closes just then costs no call', async () => {
  const receiver = await startReceiver(deciding({ record: true }))
  const rig = await startRoutingWebhooks([webhookRecord({ url: receiver.url })])
  await ask(rig)
  receiver.server.closeAllConnections()
  expect((await ask(rig)).kind).toBe('decided')
})

test('the narrowest webhook is asked: carrier, else set, else tenant, else platform', async () => {
  const receiver = await startReceiver((response, { path }) =>
    deciding({ tags: { asked: path.slice(1) } })(response),
  )
  const at = (path: string) => receiver.url.replace('/route', `/${path}`)
  const rig = await startRoutingWebhooks(
    [
      webhookRecord({ id: 1, url: at('platform') }),
      webhookRecord({ id: 2, url: at('tenant'), tenantId: 7 }),
      webhookRecord({ id: 3, url: at('set'), tenantId: 7, setId: 70 }),
      webhookRecord({ id: 4, url: at('carrier'), tenantId: 7, carrierId: 700 }),
      webhookRecord({ id: 5, url: at('off'), carrierId: 800, isEnabled: false }),
    ],
    { setOfNode: (nodeId) => (nodeId === 9 ? 70 : undefined) },
  )
  const asked = async (call: Partial<HookCall>): Promise<unknown> => {
    const answer = await ask(rig, call)
    return answer.kind === 'decided' ? [answer.decision.tags?.['asked'], answer.tenantId] : answer
  }
  const ofTenant = { tenantId: 7 }
  const carrier = sourceOf({ kind: 'carrier', id: 700, tenantId: 7 })
  expect(await asked({ ...carrier, ...ofTenant })).toEqual(['carrier', 7])
  expect(await asked({ ...sourceOf({ kind: 'node', id: 9 }), ...ofTenant })).toEqual(['set', 7])
  expect(await asked({ ...sourceOf({ kind: 'node', id: 8 }), ...ofTenant })).toEqual(['tenant', 7])
  expect(await asked(ofTenant)).toEqual(['tenant', 7])
  expect(await asked({ tenantId: 8 })).toEqual(['platform', null])
  expect(await asked(sourceOf({ kind: 'carrier', id: 800 }))).toEqual(['platform', null])
  // The carrier's webhook is of tenant 7, and so is not asked about a call of another one.
  expect(await asked({ ...carrier, tenantId: 8 })).toEqual(['platform', null])
})

test('without a webhook in use nothing is asked', async () => {
  const { webhooks } = await startRoutingWebhooks([webhookRecord({ isEnabled: false })])
  expect([webhooks.has('onInvite'), webhooks.has('onRoute')]).toEqual([false, false])
  const inUse = await startRoutingWebhooks([webhookRecord({})])
  expect([inUse.webhooks.has('onInvite'), inUse.webhooks.has('onEnd')]).toEqual([true, false])
})

test('an answer is kept for its key and time, and never for another tenant or domain', async () => {
  const receiver = await startReceiver(deciding({ record: true }))
  const { url } = receiver
  let now = 0
  const cached = webhookRecord({ url, cacheSeconds: 60 })
  const rig = await startRoutingWebhooks([cached], { steadyNow: () => now })
  const asks = async (call: Partial<HookCall> = {}): Promise<number> => {
    const before = receiver.questions.length
    expect((await ask(rig, call)).kind).toBe('decided')
    return receiver.questions.length - before
  }
  expect(await asks()).toBe(1)
  expect(await asks({ callUuid: 'call-2', ...sourceOf({ address: '203.0.113.1' }) })).toBe(0)
  for (const other of [
    { from: '4930101' },
    { to: '4940201' },
    { tenantId: 1 },
    { tenantId: 2 },
    { domain: 'nova.example' },
  ])
    expect(await asks(other)).toBe(1)
  now = 59_999
  expect(await asks()).toBe(0)
  now = 60_000
  expect(await asks()).toBe(1)
  await rig.write({ ...cached, fallback: 'refuse' })
  expect(await asks()).toBe(1)
})

test.each([
  ['source', sourceOf({ address: '203.0.113.1' })],
  ['carrier', { carrier: { id: 2, name: 'other' } }],
  ['customer', { customer: { id: 2, name: 'other' } }],
] as const)('an answer kept by %s is for that one alone', async (part, other) => {
  const receiver = await startReceiver(deciding({ record: true }))
  const { url } = receiver
  const rig = await startRoutingWebhooks([
    webhookRecord({ url, cacheSeconds: 60, cacheKey: [part] }),
  ])
  await ask(rig)
  await ask(rig, { from: '1', to: '2' })
  expect(receiver.questions).toHaveLength(1)
  await ask(rig, other)
  expect(receiver.questions).toHaveLength(2)
})

test('what the simulator is answered holds for no call: a receiver may answer it otherwise', async () => {
  const receiver = await startReceiver((response, { body }) =>
    deciding(body.includes('isSimulated') ? { record: false } : { record: true })(response),
  )
  const rig = await startRoutingWebhooks([webhookRecord({ url: receiver.url, cacheSeconds: 60 })])
  expect(await ask(rig, { isSimulated: true })).toMatchObject({ decision: { record: false } })
  expect(await ask(rig)).toMatchObject({ decision: { record: true } })
  expect(await ask(rig, { isSimulated: true })).toMatchObject({ decision: { record: true } })
})

test('a failure is not kept', async () => {
  let isWell = false
  const receiver = await startReceiver((response) =>
    isWell ? deciding({ record: true })(response) : response.writeHead(500).end(),
  )
  const rig = await startRoutingWebhooks([webhookRecord({ url: receiver.url, cacheSeconds: 60 })])
  expect((await ask(rig)).kind).toBe('failed')
  isWell = true
  expect((await ask(rig)).kind).toBe('decided')
})

const json = { 'content-type': 'application/json' }

test.each([
  ['500', 500, json, '{}', 'status 500 where 200 or 204 is expected'],
  ['201', 201, json, '{}', 'status 201 where 200 or 204 is expected'],
  [
    'a web page',
    200,
    { 'content-type': 'text/html' },
    '<p>',
    'the content type is not application/json',
  ],
  ['no JSON', 200, json, '{', 'the answer is no JSON'],
  ['a list', 200, json, '[]', 'the answer of onInvite is a list where an object is expected'],
  [
    'an unknown field',
    200,
    json,
    '{"free":true}',
    'the answer of onInvite has the unknown field "free"',
  ],
  ['no UTF-8', 200, json, Buffer.from([0x22, 0xff, 0x22]), 'the answer is no UTF-8'],
  [
    'compressed text',
    200,
    { ...json, 'content-encoding': 'gzip' },
    gzipSync('{}'),
    'the answer is compressed',
  ],
])('%s is no answer: the fallback holds', async (_, status, headers, body, why) => {
  const receiver = await startReceiver((response) => response.writeHead(status, headers).end(body))
  const { url } = receiver
  const rig = await startRoutingWebhooks([webhookRecord({ url, fallback: 'refuse' })])
  expect(await ask(rig)).toEqual({
    kind: 'failed',
    by: 'routing webhook 1',
    why,
    fallback: 'refuse',
  })
  expect(rig.webhooks.statusOf(1)).toMatchObject({ calls: 1, failed: 1, timeouts: 0 })
})

test('a receiver that is away is left alone after ten failures, and asked again later', async () => {
  let now = 0
  const receiver = await startReceiver(deciding({ record: true }))
  const { url } = receiver
  let isAway = true
  receiver.server.on('connection', (socket) => isAway && socket.destroy())
  const rig = await startRoutingWebhooks([webhookRecord({ url })], { steadyNow: () => now })
  for (let call = 0; call < 12; call += 1) expect((await ask(rig)).kind).toBe('failed')
  const { isResting, skipped, failed } = rig.webhooks.statusOf(1) ?? {}
  expect({ isResting, skipped, failed }).toEqual({ isResting: true, skipped: 2, failed: 12 })
  isAway = false
  now = 1_000
  expect((await ask(rig)).kind).toBe('decided')
  expect(rig.webhooks.statusOf(1)?.isResting).toBe(false)
  expect(rig.logged).toHaveLength(2)
})

test('a test question tells the decision and its time, and is not counted', async () => {
  const receiver = await startReceiver(deciding({ set: 4 }))
  const { url } = receiver
  const rig = await startRoutingWebhooks([webhookRecord({ url, tenantId: 7, isEnabled: false })])
  expect(await rig.webhooks.test(1, { from: '1', to: '2' })).toEqual({
    outcome: 'decided',
    decision: { set: 4 },
    reason: null,
    fallback: 'continue',
    ms: expect.any(Number) as number,
  })
  expect(JSON.parse(receiver.questions[0]?.body ?? '')).toMatchObject({
    from: '1',
    to: '2',
    tenantId: 7,
    source: { kind: 'api' },
  })
  expect(rig.webhooks.telemetry()['routing_webhook_calls_total']).toBe(0)
  expect(await rig.webhooks.test(2, { from: '1', to: '2' })).toBeUndefined()
})

test('totals go on when a webhook is changed or removed', async () => {
  const receiver = await startReceiver(deciding({ set: 4 }))
  const record = webhookRecord({ url: receiver.url, cacheSeconds: 60 })
  const rig = await startRoutingWebhooks([record])
  await ask(rig)
  await ask(rig)
  await rig.write({ ...record, cacheSeconds: 0 })
  await ask(rig)
  await rig.write()
  expect(rig.webhooks.telemetry()).toMatchObject({
    routing_webhook_calls_total: 3,
    routing_webhook_requests_total: 2,
    routing_webhook_cache_hits_total: 1,
    routing_webhook_failures_total: 0,
  })
})

test('failures of webhooks in use are told with count and last reason, until a change', async () => {
  const receiver = await startReceiver((response) => response.writeHead(500).end())
  const rig = await startRoutingWebhooks([
    webhookRecord({ id: 4, url: receiver.url, tenantId: 7 }),
    webhookRecord({ id: 5, url: receiver.url }),
  ])
  expect(rig.webhooks.troubles()).toEqual([])
  for (let call = 0; call < 2; call += 1) await ask(rig, { tenantId: 7 })
  expect(rig.webhooks.troubles()).toMatchObject([
    {
      by: 'routing webhook 4',
      message: 'status 500 where 200 or 204 is expected',
      count: 2,
      webhook: { id: 4, tenantId: 7 },
    },
  ])
})

test('an answer that its call cannot use is told as a failure of its webhook, which is asked again', async () => {
  const receiver = await startReceiver(deciding({ set: 9 }))
  const rig = await startRoutingWebhooks([
    webhookRecord({ id: 4, url: receiver.url, tenantId: 7 }),
    webhookRecord({ id: 5, url: receiver.url }),
  ])
  for (let count = 0; count < 20; count += 1)
    rig.webhooks.unusable('onInvite', 'routing webhook 4', 'there is no set 9')
  const message = 'its answer cannot be used: there is no set 9'
  expect(rig.webhooks.troubles()).toMatchObject([
    { by: 'routing webhook 4', message, count: 20, webhook: { id: 4, tenantId: 7 } },
  ])
  expect(rig.webhooks.statusOf(4)).toMatchObject({ failed: 20, lastFailure: { reason: message } })
  expect((await ask(rig, { tenantId: 7 })).kind).toBe('decided')
})
