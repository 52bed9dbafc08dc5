/** Delivery in virtual time: every answer of a receiver, and none. */
import { expect, test } from 'vitest'
import type { SendResult } from '../../../control/webhooks/sender.ts'
import { freshStore, start } from '../../support/books.ts'
import { deliveringInstance } from '../../support/delivering-node.ts'
import { ManualTime } from '../../support/manual-time.ts'
import { withGroupsTold } from '../../support/told-late.ts'
import { turnOfEventLoop } from '../../support/waiting.ts'
import { Webhooks } from '../../../control/webhooks/webhooks.ts'

const second = 1_000

const answered = (status: number, retryAfterMs?: number): SendResult => ({
  kind: 'answered',
  status,
  retryAfterMs,
  excerpt: 'thanks',
})

interface Request {
  readonly url: string
  readonly id: string
  readonly at: number
}

/**
 * Receivers `https://<name>.example`, each with a way to answer; those of `tenants` by their place.
 */
async function open(
  names: readonly string[],
  tenants: readonly (number | null)[] = [],
  allowPrivate = false,
) {
  const store = freshStore()
  const time = new ManualTime(start)
  const requests: Request[] = []
  const answers = new Map<string, () => Promise<SendResult>>()
  const { endpoints, deliveries, deliverer, outbox } = deliveringInstance(store, time, {
    instance: 'a',
    longestSleepMs: 60_000,
    allowPrivate,
    afterGone: () => void reload(),
    send: (url, id, at) => {
      requests.push({ url, id, at })
      return answers.get(url)?.() ?? Promise.resolve(answered(204))
    },
  })
  for (const id of new Set(tenants.filter((tenant) => tenant !== null)))
    store.sqlite
      .prepare("INSERT INTO tenant (id, slug, name, created_at) VALUES (?, ?, '', 0)")
      .run(id, `tenant-${id}`)
  const ids: number[] = []
  for (const [index, name] of names.entries()) {
    const body = { url: `https://${name}.example/`, events: ['*' as const], description: null }
    const active = { ...body, is_active: true }
    ids.push(await endpoints.insert(active, 'whsec_AAAA', tenants[index] ?? null, start))
  }
  async function reload(): Promise<void> {
    outbox.setEndpoints(await endpoints.active())
    deliverer.setEndpoints(await endpoints.active())
  }
  await reload()
  deliverer.start()
  time.advance(0)
  await turnOfEventLoop()
  return {
    store,
    time,
    endpoints,
    deliveries,
    deliverer,
    requests,
    answers,
    ids,
    outbox,
    write: (count = 1) => {
      const data = Array.from({ length: count }, (_, n) => ({ n }))
      return outbox.writeAll(
        data.map((each) => ({ type: 'call.ended', tenantId: null, data: each })),
      )
    },
    /** Lets answers arrive between the steps. */
    pass: async (ms: number, stepMs = Math.max(10, ms / 200)) => {
      for (let passed = 0; passed < ms; passed += stepMs) {
        time.advance(Math.min(stepMs, ms - passed))
        await turnOfEventLoop()
      }
    },
    states: async (id: number) =>
      (await deliveries.list(id, undefined, { limit: 200, offset: 0 })).rows,
  }
}

test('an accepted event is delivered once to every endpoint', async () => {
  const { write, pass, requests, ids, states } = await open(['a', 'b'])
  await write(3)
  await pass(1_000)
  expect(requests.length).toBe(6)
  for (const id of ids)
    expect(
      (await states(id)).map(({ state, attempts, last_status }) => [state, attempts, last_status]),
    ).toEqual(Array.from({ length: 3 }, () => ['delivered', 1, 204]))
  await pass(86_400_000)
  expect(requests.length).toBe(6)
})

test('a receiver that fails is asked again after longer and longer pauses, ten times in three days', async () => {
  const { write, pass, requests, answers, ids, states } = await open(['a'])
  answers.set('https://a.example/', () => Promise.resolve(answered(500)))
  await write()
  await pass(75 * 3_600 * second, 500)
  const minutes = requests.map(({ at }) => Math.round(at / 60_000))
  expect(minutes).toEqual([0, 0, 1, 6, 36, 156, 516, 1236, 2676, 4116])
  expect(new Set(requests.map(({ id }) => id)).size).toBe(1)
  expect(await states(ids[0] ?? 0)).toMatchObject([
    { state: 'failed', attempts: 10, last_status: 500 },
  ])
})

test.each<[string, SendResult, number]>([
  ['silence', { kind: 'failed', reason: 'no answer within 10000 ms' }, 5],
  ['a redirect', answered(302), 5],
  ['a refusal', answered(400), 5],
  ['a wish to be left alone', answered(429, 120 * second), 120],
  ['a wish for more than an hour', answered(503, 86_400 * second), 3_600],
])('after %s it is asked again, not before time', async (_, sent, seconds) => {
  const { write, pass, requests, answers, ids, states } = await open(['a'])
  answers.set('https://a.example/', () => Promise.resolve(sent))
  await write()
  await pass((seconds - 1) * second, 500)
  expect(requests.length).toBe(1)
  expect(await states(ids[0] ?? 0)).toMatchObject([{ state: 'pending', attempts: 1 }])
  await pass(2 * second, 100)
  expect(requests.length).toBe(2)
})

test('410 switches the endpoint off; what waits for it stays, and nothing new is written', async () => {
  const { write, pass, requests, answers, endpoints, outbox, ids } = await open(['a', 'b'])
  answers.set('https://a.example/', () => Promise.resolve(answered(410)))
  await write()
  await pass(100)
  const [a = 0] = ids
  expect(await endpoints.find({ tenantId: null, actor: '', now: 0 }, a)).toMatchObject({
    is_active: 0,
    disabled_reason: 'gone',
  })
  await write()
  await pass(86_400_000, 60_000)
  expect(requests.filter(({ url }) => url.includes('a.example')).length).toBe(1)
  expect(requests.filter(({ url }) => url.includes('b.example')).length).toBe(2)
  expect(outbox.wants('call.ended', null)).toBe(true)
})

test('many receivers that hang: the number of requests under way stays bounded', async () => {
  const names = Array.from({ length: 10 }, (_, index) => `dead${index}`)
  const { write, pass, answers, deliverer } = await open(names)
  for (const name of names)
    answers.set(`https://${name}.example/`, () => new Promise(() => undefined))
  await write(50)
  await pass(1_000)
  expect(deliverer.inFlight).toBe(64)
})

test('receivers of one tenant that hang delay nothing of another tenant or of the platform', async () => {
  const hanging = Array.from({ length: 20 }, (_, n) => `hangs${n}`)
  const names = [...hanging, 'other', 'platform']
  const { outbox, pass, requests, answers, deliverer } = await open(names, [
    ...hanging.map(() => 1),
    2,
  ])
  for (const name of hanging)
    answers.set(`https://${name}.example/`, () => new Promise<SendResult>(() => undefined))
  for (let n = 0; n < 20; n += 1)
    await outbox.writeAll([{ type: 'call.ended', tenantId: 1, data: { n } }])
  await pass(1_000)
  await outbox.writeAll([{ type: 'call.ended', tenantId: 2, data: {} }])
  await pass(1_000)
  const to = (name: string) =>
    requests.filter(({ url }) => url === `https://${name}.example/`).length
  expect([to('other'), to('platform')]).toEqual([1, 21])
  expect(deliverer.inFlight).toBe(32)
})

test('an event is sent once, although its result is stored while the waiting ones are read', async () => {
  const { write, pass, time, requests, deliveries, deliverer, store } = await open(['a'])
  const read = deliveries.take.bind(deliveries)
  const slow: (() => void)[] = []
  let isSlow = false
  deliveries.take = async (...asked) => {
    const found = await read(...asked)
    if (isSlow) await new Promise<void>((resolve) => void slow.push(resolve))
    return found
  }
  await write(2)
  // The first search sends both; their results wait for the group when the second one reads.
  time.advance(10)
  await turnOfEventLoop()
  isSlow = true
  deliverer.wake()
  await pass(100)
  expect([requests.length, slow.length]).toEqual([2, 1])
  const states = store.sqlite.prepare('SELECT DISTINCT state FROM webhook_delivery').pluck()
  expect(states.all()).toEqual(['delivered'])
  isSlow = false
  for (const go of slow) go()
  await pass(1_000)
  expect(requests.length).toBe(2)
})

test('what was under way at the end is delivered after the next start', async () => {
  const { write, pass, requests, answers, deliverer, ids, states } = await open(['a'])
  let answer: (sent: SendResult) => void = () => undefined
  answers.set('https://a.example/', () => new Promise((resolve) => (answer = resolve)))
  await write()
  await pass(100)
  deliverer.stop()
  answer(answered(204))
  await pass(100)
  expect(await states(ids[0] ?? 0)).toMatchObject([{ state: 'pending', attempts: 0 }])
  expect(requests.length).toBe(1)
})

test('events of one tenant are not told to another, nor what belongs to the platform', async () => {
  const { outbox, endpoints, store } = await open([])
  store.sqlite.exec(
    "INSERT INTO tenant (id, slug, name, created_at) VALUES (1, 'a', 'a', 0), (2, 'b', 'b', 0)",
  )
  const body = { url: 'https://a.example/', description: null, is_active: true }
  await endpoints.insert({ ...body, events: ['call.ended'] }, 'whsec_AAAA', 1, start)
  outbox.setEndpoints(await endpoints.active())
  expect([1, 2, null].map((tenantId) => outbox.wants('call.ended', tenantId))).toEqual([
    true,
    false,
    false,
  ])
  expect(outbox.wants('call.answered', 1)).toBe(false)
  await outbox.writeAll([{ type: 'call.ended', tenantId: 2, data: {} }])
  await outbox.writeAll([{ type: 'call.answered', tenantId: 1, data: {} }])
  expect(store.sqlite.prepare('SELECT count(*) FROM webhook_event').pluck().get()).toBe(0)
})

test.each([
  [false, null, 'thanks'],
  [false, 1, 'thanks'],
  [true, null, 'thanks'],
  [true, 1, null],
])(
  'the start of an answer is kept, but not for tenants where receivers may be private: %s, %s',
  async (allowPrivate, tenant, kept) => {
    const { outbox, pass, ids, states } = await open(['a'], [tenant], allowPrivate)
    await outbox.writeAll([{ type: 'call.ended', tenantId: tenant, data: {} }])
    await pass(1_000)
    expect(await states(ids[0] ?? 0)).toMatchObject([{ state: 'delivered', last_answer: kept }])
  },
)

const day = 86_400_000

const webhooksOf = (store: ReturnType<typeof freshStore>, time: ManualTime, seed: number) =>
  new Webhooks({
    store,
    now: time.now,
    steadyNow: time.now,
    schedule: time.schedule,
    random: () => 0,
    log: () => undefined,
    instance: { name: 'a' },
    randomBytes: (size) => Buffer.alloc(size, seed),
    resolve: () => Promise.reject(new Error('ENOTFOUND')),
    allowPrivate: false,
  })

async function openWebhooks() {
  const store = freshStore()
  const time = new ManualTime(start)
  const webhooks = webhooksOf(store, time, 1)
  const body = { url: 'https://hooks.example.com/', events: ['*' as const], description: null }
  const off = { ...body, is_active: false }
  const id = await webhooks.endpoints.insert(off, 'whsec_AAAA', null, start)
  await webhooks.reload()
  webhooks.start()
  const count = (table: string) =>
    store.sqlite.prepare(`SELECT count(*) FROM ${table}`).pluck().get()
  const pass = async (ms: number) => {
    time.advance(ms)
    await turnOfEventLoop()
  }
  return { store, time, pass, webhooks, id, count }
}

test('events are forgotten after seven days, even those that wait for an endpoint that is off', async () => {
  const { time, pass, webhooks, id, count } = await openWebhooks()
  for (let n = 0; n < 3; n += 1) await webhooks.sendTest(id)
  await pass(6 * day)
  await webhooks.sendTest(id)
  expect([count('webhook_event'), count('webhook_delivery')]).toEqual([4, 4])
  await pass(day + 120_000)
  expect([count('webhook_event'), count('webhook_delivery')]).toEqual([1, 1])
  await pass(7 * day)
  expect([count('webhook_event'), count('webhook_delivery')]).toEqual([0, 0])
  await webhooks.stop()
  expect(time.waiting).toBe(0)
})

test('of delivered events only the newest are kept; waiting ones stay', async () => {
  const { store, webhooks, id, count } = await openWebhooks()
  for (let n = 0; n < 10; n += 1) await webhooks.sendTest(id)
  store.sqlite.exec("UPDATE webhook_delivery SET state = 'delivered' WHERE id <> 2")
  const { deliveries } = webhooks
  expect(await deliveries.prune(0, 4, { before: 0, upTo: 7 })).toBe(4)
  expect(await deliveries.prune(4, 4, { before: 0, upTo: 7 })).toBe(8)
  expect(await deliveries.prune(8, 4, { before: 0, upTo: 7 })).toBe(0)
  const left = store.sqlite.prepare('SELECT id FROM webhook_event ORDER BY id').pluck().all()
  expect([left, count('webhook_delivery')]).toEqual([[2, 8, 9, 10], 4])
})

test('a removed endpoint is gone at once, and its deliveries go a few at a time', async () => {
  const { store, time, pass, webhooks, id, count } = await openWebhooks()
  for (let n = 0; n < 1_000; n += 1) await webhooks.sendTest(id)
  expect(await webhooks.remove(id)).toBe(true)
  expect(await webhooks.endpoints.find({ tenantId: null, actor: 'x', now: 0 }, id)).toBeUndefined()
  const left: unknown[] = []
  for (let step = 0; step < 10 && count('webhook_endpoint') !== 0; step += 1) {
    left.push(count('webhook_delivery'))
    await pass(20)
  }
  expect(left).toEqual([800, 600, 400, 200, 0])
  expect([count('webhook_endpoint'), count('webhook_delivery')]).toEqual([0, 0])
  await webhooks.stop()
  expect(time.waiting).toBe(0)
  store.close()
})

test('a removal that a restart interrupted goes on after it', async () => {
  const { store, time, webhooks, id, count } = await openWebhooks()
  for (let n = 0; n < 300; n += 1) await webhooks.sendTest(id)
  await webhooks.remove(id)
  await webhooks.stop()
  expect(count('webhook_delivery')).toBe(100)
  const again = webhooksOf(store, time, 2)
  expect(await again.endpoints.active()).toEqual([])
  await again.reload()
  again.start()
  await turnOfEventLoop()
  expect([count('webhook_endpoint'), count('webhook_delivery')]).toEqual([0, 0])
  await again.stop()
})

test('whoever asks for a stop that has begun waits for it', async () => {
  let tell = (): void => undefined
  const told = new Promise<void>((resolve) => (tell = resolve))
  const webhooks = webhooksOf(withGroupsTold(freshStore(), told), new ManualTime(start), 1)
  await webhooks.reload()
  webhooks.start()
  const ended: string[] = []
  const stops = ['first', 'second'].map(async (name) => {
    await webhooks.stop()
    ended.push(name)
  })
  for (let turn = 0; turn < 10; turn += 1) await turnOfEventLoop()
  expect(ended).toEqual([])
  tell()
  await Promise.all(stops)
  expect(ended).toEqual(['first', 'second'])
})
