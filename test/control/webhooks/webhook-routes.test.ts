/** Webhooks over the front door: endpoints are made by REST, receivers are real and on loopback. */
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http'
import { once } from 'node:events'
import { Webhook } from 'standardwebhooks'
import { afterEach, expect, test } from 'vitest'
import { Ocs } from '../../../engine/charging/ocs.ts'
import { Webhooks } from '../../../control/webhooks/webhooks.ts'
import { transaction } from '../../../schema/sql/query.ts'
import { Rounds } from '../../../schema/rounds.ts'
import { endedCall, openCall } from '../../support/books.ts'
import { apiWith, openControl } from '../../support/control.ts'
import { deferred } from '../../support/deferred.ts'
import { journalOf } from '../../support/journals.ts'
import { eventually } from '../../support/waiting.ts'
import { failing, readColumn } from '../../support/stored.ts'
import { isOnPostgres } from '../../support/on-sqlite.ts'
import { onlyProcess } from '../../support/only-process.ts'

interface Received {
  readonly headers: IncomingHttpHeaders
  readonly body: string
  readonly type: string
  readonly data: Record<string, unknown>
}

const schedule = (work: () => void, delayMs: number) => {
  const timer = setTimeout(work, delayMs)
  return () => clearTimeout(timer)
}

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
})

async function openReceiver(status: () => number = () => 204) {
  const received: Received[] = []
  const server: Server = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk: Buffer) => (body += chunk.toString()))
    request.on('end', () => {
      const { type, data } = JSON.parse(body) as Pick<Received, 'type' | 'data'>
      received.push({ headers: request.headers, body, type, data })
      response.writeHead(status()).end(status() === 500 ? 'no such ledger' : undefined)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  closers.push(
    () => server.close(),
    () => server.closeAllConnections(),
  )
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : 0
  return { received, url: `http://127.0.0.1:${port}/hook` }
}

/** The control API with real time, and receivers on loopback allowed. */
async function open() {
  const base = await openControl()
  const { store } = base.deps
  const webhooks = new Webhooks({
    store,
    now: Date.now,
    steadyNow: Date.now,
    random: Math.random,
    schedule,
    log: () => undefined,
    randomBytes: base.deps.randomBytes,
    resolve: () => Promise.resolve([{ address: '127.0.0.1', family: 4 }]),
    allowPrivate: true,
    instance: { name: 'a' },
  })
  webhooks.start()
  closers.push(() => webhooks.stop())
  const ocs = new Ocs({
    store,
    now: Date.now,
    wallNow: Date.now,
    schedule,
    every: new Rounds({ schedule, steadyNow: Date.now }).every,
    log: () => undefined,
    journal: journalOf(store, schedule),
    unknownCaller: 'deny',
    ...(isOnPostgres && { members: onlyProcess() }),
    events: webhooks.sink,
  })
  const deps = { ...base.deps, now: Date.now, steadyNow: Date.now, webhooks, ocs }
  const app = apiWith(deps)
  const token = await base.key()
  const call = (method: string, path: string, body?: unknown) =>
    base.request(path, { app, token, method, body })
  const endpoint = async (url: string, more: object = {}) =>
    (await call('POST', '/webhooks', { url, ...more })).data<{ id: number; secret: string }>()
  return { ...base, webhooks, ocs, call, endpoint }
}

test('every event of a prepaid call arrives, once, and its signature holds', async () => {
  const { ocs, call, endpoint } = await open()
  const { received, url } = await openReceiver()
  await call('POST', '/rate-plans', { name: 'retail', currency: 'USD' })
  await call('POST', '/rates', { rate_plan: 'retail', prefix: '49', rate_per_minute: '0.60' })
  const made = await call('POST', '/customers', {
    name: 'acme',
    rate_plan: 'retail',
    numbers: ['15550001'],
    low_balance_threshold: '0.50',
  })
  const { id: customerId } = made.data<{ id: number }>()
  const { secret } = await endpoint(url)

  const question = (callUuid: string) => ({
    callUuid,
    caller: '15550001',
    callee: '4930',
    customerId: null,
    startedAt: Date.now(),
  })
  const kinds = () => received.map(({ type }) => type).toSorted()
  await ocs.authorizeForNode(question('poor'))
  await call('POST', `/customers/${customerId}/wallet/adjust`, {
    amount: '0.60',
    reason: 'gift',
    kind: 'topup',
  })
  await ocs.authorizeForNode(question('a'))
  await ocs.authorizeForNode(question('a'))
  const open1 = openCall('a', Date.now(), { callerNumber: '15550001', customerId, tenantId: null })
  void ocs.answered(open1)
  await ocs.report(endedCall('a', 60, { callerNumber: '15550001', customerId }))
  await ocs.report(endedCall('a', 60, { callerNumber: '15550001', customerId }))
  await eventually(() =>
    expect(kinds()).toEqual([
      'call.answered',
      'call.authorized',
      'call.denied',
      'call.ended',
      'wallet.depleted',
      'wallet.low_balance',
      'wallet.topped_up',
    ]),
  )
  for (const { headers, body } of received)
    expect(new Webhook(secret).verify(body, headers as Record<string, string>)).toBeTruthy()
  const of = (wanted: string) => received.find(({ type }) => type === wanted)?.data
  expect(of('call.denied')).toMatchObject({ call_uuid: 'poor', denial_code: 'insufficient_funds' })
  expect(of('call.authorized')).toMatchObject({ call_uuid: 'a', reserved_exact: '0.60' })
  expect(of('call.ended')).toMatchObject({ billsec: 60, cost_exact: '0.60', currency: 'USD' })
  expect(of('wallet.topped_up')).toMatchObject({ amount_exact: '0.60', note: 'gift' })
  expect(of('wallet.low_balance')).toMatchObject({ customer_id: customerId, balance_exact: '0.00' })
})

test('an event stands and falls with what it tells', async () => {
  const { ocs, call, store, endpoint } = await open()
  const { url } = await openReceiver()
  await endpoint(url)
  const made = await call('POST', '/customers', { name: 'acme' })
  const { id } = made.data<{ id: number }>()
  const events = () => readColumn(store, 'SELECT type FROM webhook_event')
  const end = await failing(store, 'UPDATE', 'wallet')
  const move = {
    customerId: id,
    kind: 'topup',
    amountMicros: 1,
    ref: 'r',
    actor: 'x',
    note: null,
  } as const
  await expect(ocs.move(move)).rejects.toThrow('full')
  expect(await events()).toEqual([])
  await end()
  await ocs.move(move)
  await ocs.move(move)
  expect(await events()).toEqual(['wallet.topped_up'])
})

test('the secret is told when it is made and never again; a rotation overlaps', async () => {
  const { call, endpoint } = await open()
  const { received, url } = await openReceiver()
  const { id, secret } = await endpoint(url)
  expect((await call('GET', `/webhooks/${id}`)).text).not.toContain(secret.slice(6, 20))
  expect((await call('GET', '/webhooks')).text).not.toContain(secret.slice(6, 20))
  const rotated = await call('POST', `/webhooks/${id}/rotate`, { overlap_seconds: 60 })
  const { secret: next } = rotated.data<{ secret: string }>()
  expect((await call('POST', `/webhooks/${id}/test`)).status).toBe(202)
  await eventually(() => expect(received.length).toBe(1))
  const verify = (key: string, { headers, body } = received.at(-1) ?? { headers: {}, body: '' }) =>
    new Webhook(key).verify(body, headers as Record<string, string>)
  expect([verify(secret), verify(next)]).toMatchObject([
    { type: 'webhook.test' },
    { type: 'webhook.test' },
  ])
  const last = await call('POST', `/webhooks/${id}/rotate`, { overlap_seconds: 0 })
  await call('POST', `/webhooks/${id}/test`)
  await eventually(() => expect(received.length).toBe(2))
  expect(() => verify(next)).toThrow('No matching signature found')
  expect(verify(last.data<{ secret: string }>().secret)).toMatchObject({ type: 'webhook.test' })
})

test('what failed is on the list and can be sent again by hand; 410 switches the endpoint off', async () => {
  const { call, endpoint } = await open()
  let status = 500
  const { received, url } = await openReceiver(() => status)
  const { id } = await endpoint(url)
  await call('POST', `/webhooks/${id}/test`)
  const list = async (state = 'pending') =>
    (await call('GET', `/webhooks/${id}/deliveries?state=${state}`)).data<
      { id: number; last_status: number; attempts: number; payload: unknown }[]
    >()
  await eventually(async () =>
    expect(await list()).toMatchObject([
      { last_status: 500, last_answer: 'no such ledger', attempts: 1 },
    ]),
  )
  const [delivery] = await list()
  expect(delivery?.payload).toMatchObject({ type: 'webhook.test' })

  status = 204
  const again = await call('POST', `/webhooks/${id}/deliveries/${delivery?.id}/retry`)
  expect([again.status, received.length]).toEqual([202, 1])
  await eventually(async () => expect(await list('delivered')).toHaveLength(1))
  expect(received[0]?.headers['webhook-id']).toBe(received[1]?.headers['webhook-id'])

  status = 410
  await call('POST', `/webhooks/${id}/test`)
  await eventually(async () =>
    expect((await call('GET', `/webhooks/${id}`)).data()).toMatchObject({
      is_active: false,
      disabled_reason: 'gone',
    }),
  )
  expect((await call('POST', `/webhooks/${id}/test`)).code).toBe('endpoint_inactive')
  expect((await call('POST', `/webhooks/${id}/deliveries/${delivery?.id}/retry`)).status).toBe(409)
  const back = await call('PATCH', `/webhooks/${id}`, { is_active: true })
  expect(back.data()).toMatchObject({ is_active: true, disabled_reason: null })
  expect((await call('POST', `/webhooks/${id}/deliveries/999/retry`)).status).toBe(404)
})

test.runIf(isOnPostgres)(
  'an instance that starts sends nothing before the claims of its last run are released',
  async () => {
    const { received, url } = await openReceiver()
    const { webhooks, endpoint, store } = await open()
    const { id } = (await endpoint(url)) ?? {}
    await webhooks.stop()
    for (let count = 0; count < 2; count += 1) await webhooks.sendTest(id ?? 0)
    const { statements } = store
    await statements
      .prepare(
        `UPDATE webhook_delivery SET claimed_by = 'a', claimed_until = $1
         WHERE id = (SELECT min(id) FROM webhook_delivery)`,
      )
      .run([Date.now() + 60_000])
    const [isLocked, mayGoOn] = [deferred(), deferred()]
    const holding = transaction(store, async () => {
      await statements
        .prepare("SELECT FROM webhook_delivery WHERE claimed_by = 'a' FOR UPDATE")
        .all([])
      isLocked.resolve()
      await mayGoOn.promise
    })
    await isLocked.promise
    webhooks.start()
    await new Promise((resolve) => setTimeout(resolve, 200))
    expect(received).toEqual([])
    mayGoOn.resolve()
    await holding
    await eventually(() => expect(received).toHaveLength(2))
  },
)

test('a name that turned to an inside address is not connected to', async () => {
  const { received, url } = await openReceiver()
  const { deps } = await openControl()
  const webhooks = new Webhooks({
    ...deps,
    now: Date.now,
    steadyNow: Date.now,
    random: () => 0,
    schedule,
    allowPrivate: false,
    instance: { name: 'a' },
    resolve: () => Promise.resolve([{ address: '127.0.0.1', family: 4 }]),
  })
  closers.push(() => webhooks.stop())
  webhooks.start()
  const port = new URL(url).port
  const body = { url: `http://rebind.example:${port}/`, events: ['*' as const], description: null }
  const active = { ...body, is_active: true }
  const id = await webhooks.endpoints.insert(active, 'whsec_AAAA', null, 0)
  await webhooks.reload()
  await webhooks.sendTest(id)
  await eventually(async () => {
    const { rows } = await webhooks.deliveries.list(id, undefined, { limit: 1, offset: 0 })
    expect(rows).toMatchObject([{ attempts: 1, last_error: 'the target is a private address' }])
  })
  expect(received).toEqual([])
})
