import { activeCall } from '../../../support/engine-views.ts'
import { beforeEach, expect, test } from 'vitest'
import { EventFeed } from '../../../../control/observe/events/event-feed.ts'
import { EventHub } from '../../../../control/observe/events/event-hub.ts'
import { EventLog } from '../../../../engine/event-log.ts'
import { addCustomer, addPlan, goldenRate } from '../../../support/books.ts'
import { deferred } from '../../../support/deferred.ts'
import { openControl, startOfTime, type TestControl } from '../../../support/control.ts'
import { until } from '../../../support/fake-ocs.ts'
import { ManualTime } from '../../../support/manual-time.ts'
import { runSql } from '../../../support/stored.ts'

let control: TestControl
let log: EventLog
let now: number

beforeEach(async () => {
  now = startOfTime
  log = new EventLog(() => now)
  control = await openControl({ events: log })
})

const node = (setId: number, tenantId: number | null = null) =>
  log.add({ type: 'node.down', tenantId, setId, destination: 'sip:n:5060', state: 'probing' })

/** Reads a stream as it comes. */
async function open(given?: string, headers: Readonly<Record<string, string>> = {}) {
  const token = given ?? (await control.key())
  const response = await control.app.request('/api/v1/events', {
    headers: { Authorization: `Bearer ${token}`, Accept: 'text/event-stream', ...headers },
  })
  const body: ReadableStream<Uint8Array> | null = response.body
  const reader = body?.getReader()
  if (reader === undefined) throw new Error('no body')
  const next = async (): Promise<string | undefined> => {
    const read = await reader.read()
    return read.done ? undefined : new TextDecoder().decode(read.value)
  }
  return { response, next, cancel: () => reader.cancel(), greeting: await next() }
}

const idOf = (sequence: number): string => `${startOfTime.toString(36)}-${sequence}`

test('a stream tells what happens from now on, with ids, types and data', async () => {
  node(1)
  const { response, next, greeting } = await open()
  expect(response.headers.get('content-type')).toBe('text/event-stream')
  expect(greeting).toBe('retry: 2000\n: welcome\n\n')
  node(2)
  control.hub.flush()
  expect(await next()).toBe(
    `id: ${idOf(2)}\nevent: node.down\ndata: ${JSON.stringify({
      at: '2026-01-01T00:00:00.000Z',
      set_id: 2,
      destination: 'sip:n:5060',
      state: 'probing',
    })}\n\n`,
  )
})

test('a reader that comes again gets what it has missed, once', async () => {
  for (const setId of [1, 2, 3]) node(setId)
  const { greeting, next } = await open(await control.key(), { 'Last-Event-ID': idOf(1) })
  expect(greeting).not.toContain(`id: ${idOf(1)}\n`)
  expect(greeting).toContain(`id: ${idOf(2)}\n`)
  expect(greeting).toContain(`id: ${idOf(3)}\n`)
  expect(greeting).not.toContain('stream.gap')
  node(4)
  control.hub.flush()
  const more = await next()
  expect(more?.match(/^id: /gm)).toHaveLength(1)
})

test.each(['other-1', `${startOfTime.toString(36)}-99`, 'nonsense'])(
  'a reader whose last event (%s) is not known is told that there is a gap',
  async (id) => {
    node(1)
    const { greeting } = await open(await control.key(), { 'Last-Event-ID': id })
    expect(greeting).toContain('event: stream.gap')
    expect(greeting).toContain(`id: ${idOf(1)}\n`)
  },
)

test('a tenant hears of its own only', async () => {
  const acme = await control.tenant('acme')
  const beta = await control.tenant('beta')
  const key = (tenant_slug: string) =>
    control.key({ kind: 'pbx', tenant_scope: 'tenant', tenant_slug })
  const stream = await open(await key('acme'))
  node(1)
  node(2, beta)
  node(3, acme)
  control.hub.flush()
  const heard = await stream.next()
  expect(heard?.match(/"set_id":(\d)/g)).toEqual(['"set_id":3'])
  const listed = await control.request('/api/v1/events', { token: await key('beta') })
  expect(listed.data()).toMatchObject({ events: [{ data: { set_id: 2 } }] })
})

test('a call that is answered comes with its price, so that a reader can tell its cost at any time', async () => {
  const { store, ocs } = control
  const planId = await addPlan(store, [goldenRate])
  const customerId = await addCustomer(store, { name: '15550001111', rate_plan_id: planId })
  await runSql(store, 'UPDATE wallet SET balance_micros = 10000000')
  await ocs.reload()
  const call = activeCall({
    callUuid: 'uuid-1',
    direction: 'outbound',
    startedAt: startOfTime - 2_000,
    customerId,
    callerNumber: '15550001111',
    calledNumber: '4930100',
    setId: 1,
    node: 'sip:n:5060',
  })
  const asked = { callUuid: 'uuid-1', caller: '15550001111', callee: '4930100', customerId: null }
  await ocs.authorize({ ...asked, startedAt: startOfTime })
  const { next } = await open()
  for (const type of ['call.started', 'call.answered'] as const)
    log.add({ type, tenantId: null, call })
  control.hub.flush()
  const [started, answered] = [...((await next()) ?? '').matchAll(/^data: (.*)$/gm)].map(
    ([, data = '']) => JSON.parse(data) as Record<string, unknown>,
  )
  expect(started).toMatchObject({
    call_uuid: 'uuid-1',
    state: 'ACTIVE',
    customer_id: customerId,
    start_stamp: '2025-12-31T23:59:58.000Z',
    answer_stamp: '2026-01-01T00:00:00.000Z',
  })
  expect(started).not.toHaveProperty('price')
  expect(answered?.['price']).toEqual({
    currency: 'USD',
    connect_fee: '0.40',
    first_increment: 60,
    increment: 1,
    first_rate_per_minute: '0.20',
    rate_per_minute: '0.10',
    decimals: 4,
    rounding: 'up',
  })
})

test('many events of others are no gap for a reader of a tenant', async () => {
  const acme = await control.tenant('acme')
  const token = await control.key({ kind: 'pbx', tenant_scope: 'tenant', tenant_slug: 'acme' })
  node(1, acme)
  for (let event = 0; event < 20_000; event++) node(2)
  expect((await open(token, { 'Last-Event-ID': idOf(1) })).greeting).not.toContain('stream.gap')
  expect((await open(undefined, { 'Last-Event-ID': idOf(0) })).greeting).toContain('stream.gap')
  node(3, acme)
  expect((await open(token, { 'Last-Event-ID': idOf(1) })).greeting).toContain('"set_id":3')
  expect((await open(token, { 'Last-Event-ID': idOf(0) })).greeting).toContain('stream.gap')
})

test('a reader that does not read is let go; the others go on', async () => {
  const [slow, quick] = [await open(), await open()]
  for (let round = 0; round < 20; round++) {
    for (let event = 0; event < 800; event++) node(event)
    control.hub.flush()
    await quick.next()
  }
  expect(control.hub.size).toBe(1)
  let text: string | undefined = ''
  while (text !== undefined) text = await slow.next()
  node(1)
  control.hub.flush()
  expect(await quick.next()).toContain('node.down')
})

test('idle streams are kept open, old ones end, and a reader that leaves is forgotten', async () => {
  const stream = await open()
  control.hub.keepAlive()
  expect(await stream.next()).toBe(': keep-alive\n\n')
  control.tick(15 * 60_000)
  control.hub.keepAlive()
  expect(await stream.next()).toBeUndefined()
  expect(control.hub.size).toBe(0)
  const other = await open()
  expect(control.hub.size).toBe(1)
  await other.cancel()
  await until(() => control.hub.size === 0)
})

test('a stream ends within a second of its credential or its tenant', async () => {
  const acme = await control.tenant('acme')
  const ours = await control.key({ tenant_scope: 'tenant', tenant_slug: 'acme' })
  const streams = [await open(await control.key({ name: 'lost' })), await open(ours), await open()]
  control.tick(1_000)
  control.hub.flush()
  expect(control.hub.size).toBe(3)
  const token = await control.key()
  const keys = await control.request('/api/v1/application-keys?search=lost', { token })
  const uuid = keys.data<{ uuid: string }[]>()[0]?.uuid
  await control.request(`/api/v1/application-keys/${uuid}`, { token, method: 'DELETE' })
  const body = { is_active: false }
  await control.request(`/api/v1/tenants/${acme}`, { token, method: 'PATCH', body })
  node(1)
  control.tick(1_000)
  control.hub.flush()
  await until(() => control.hub.size === 1)
  const heard = await Promise.all(streams.map(({ next }) => next()))
  expect(heard).toEqual([undefined, undefined, expect.stringContaining('node.down')])
})

test('events wait for the check of their reader; one that takes too long ends the stream', async () => {
  const hub = new EventHub(log, () => now)
  const checks = [deferred<boolean>(), deferred<boolean>()]
  let asked = 0
  const isStillAdmitted = () => checks[asked++]?.promise ?? Promise.resolve(false)
  const stream = hub.open({ tenantId: null, actor: 'key' }, undefined, isStillAdmitted)
  if (typeof stream === 'string') throw new Error(stream)
  const reader = stream.getReader()
  await reader.read()
  now += 1_000
  node(1)
  hub.flush()
  node(2)
  hub.flush()
  checks[0]?.resolve(true)
  const texts = [await reader.read(), await reader.read()].map(({ value }) =>
    new TextDecoder().decode(value),
  )
  expect(texts[0]).toContain('"set_id":1')
  expect(texts[1]).toContain('"set_id":2')
  now += 1_000
  hub.flush()
  expect(hub.size).toBe(1)
  now += 1_000
  hub.flush()
  expect(hub.size).toBe(0)
  checks[1]?.resolve(false)
  expect((await reader.read()).done).toBe(true)
})

test('events wake the process only while somebody reads or follows them', async () => {
  const time = new ManualTime(startOfTime)
  const hub = new EventHub(log, time.now)
  const feed = new EventFeed(log, time.now, undefined)
  hub.begin(time.every)
  feed.begin(time.every)
  expect(time.waiting).toBe(0)
  const reader = hub.open({ tenantId: null, actor: 'key' }, undefined, () => Promise.resolve(true))
  const follower = feed.open(undefined)
  if (typeof reader === 'string' || follower === undefined) throw new Error('no stream')
  const streams = [reader.getReader(), follower.getReader()]
  for (const stream of streams) await stream.read()
  node(1)
  time.advance(250)
  for (const stream of streams) {
    const { value } = await stream.read()
    expect(new TextDecoder().decode(value)).toContain('node.down')
  }
  expect(time.waiting).toBe(1)
  for (const stream of streams) await stream.cancel()
  expect(time.waiting).toBe(0)
})

test('there are 2,000 readers at most', () => {
  const hub = new EventHub(log, () => now)
  const read = (actor: string) =>
    hub.open({ tenantId: null, actor }, undefined, () => Promise.resolve(true))
  for (let reader = 0; reader < 2_000; reader++)
    expect(read(`key ${reader % 50}`)).toBeInstanceOf(ReadableStream)
  expect(read('another')).toBe('all')
  hub.close()
  expect(hub.size).toBe(0)
})

test('neither a credential nor a tenant takes all readers', async () => {
  const yes = () => Promise.resolve(true)
  const hub = new EventHub(log, () => now)
  const read = (tenantId: number | null, actor: string) =>
    hub.open({ tenantId, actor }, undefined, yes)
  const streams = Array.from({ length: 100 }, () => read(1, 'key 0'))
  expect(read(1, 'key 0')).toBe('credential')
  for (let reader = 100; reader < 500; reader++)
    expect(read(1, `key ${reader % 4}x`)).toBeInstanceOf(ReadableStream)
  expect([read(1, 'key 9'), read(2, 'key 0')]).toEqual(['tenant', 'credential'])
  expect(read(2, 'key 9')).toBeInstanceOf(ReadableStream)
  // A reader that leaves makes room.
  const [first] = streams
  if (first instanceof ReadableStream) await first.cancel()
  expect(read(1, 'key 0')).toBeInstanceOf(ReadableStream)
})

test('one stream too many is 429, and counted', async () => {
  const token = await control.key()
  const streams = await Promise.all(Array.from({ length: 100 }, () => open(token)))
  const refused = await control.request('/api/v1/events', {
    token,
    headers: { Accept: 'text/event-stream' },
  })
  expect([refused.status, refused.code, refused.headers.get('retry-after')]).toEqual([
    429,
    'too_many_readers',
    '30',
  ])
  expect(control.telemetry.refused.eventReaders).toBe(1)
  for (const { cancel } of streams) await cancel()
})

test('who accepts JSON gets a list, and may go on after it', async () => {
  node(1)
  node(2)
  const token = await control.key()
  const first = await control.request('/api/v1/events', { token })
  expect(first.data()).toMatchObject({
    events: [{ id: idOf(1), type: 'node.down', data: { set_id: 1 } }, { id: idOf(2) }],
    last_event_id: idOf(2),
  })
  node(3)
  const next = await control.request(`/api/v1/events?after=${idOf(2)}`, { token })
  expect(next.data<{ events: unknown[] }>().events).toHaveLength(1)
})
