/** What keeps the outbox from growing without end. */
import { expect, test } from 'vitest'
import { Webhooks } from '../../../control/webhooks/webhooks.ts'
import { freshStore, start } from '../../support/books.ts'
import { ManualTime } from '../../support/manual-time.ts'
import { turnOfEventLoop } from '../../support/waiting.ts'

const day = 86_400_000

async function open() {
  const store = freshStore()
  const time = new ManualTime(start)
  const webhooks = new Webhooks({
    store,
    now: time.now,
    steadyNow: time.now,
    schedule: time.schedule,
    random: () => 0,
    log: () => undefined,
    node: { name: 'a' },
    randomBytes: (size) => Buffer.alloc(size, 1),
    resolve: () => Promise.reject(new Error('ENOTFOUND')),
    allowPrivate: false,
  })
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
  const { time, pass, webhooks, id, count } = await open()
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
  const { store, webhooks, id, count } = await open()
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
  const { store, time, pass, webhooks, id, count } = await open()
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
  const { store, time, webhooks, id, count } = await open()
  for (let n = 0; n < 300; n += 1) await webhooks.sendTest(id)
  await webhooks.remove(id)
  await webhooks.stop()
  expect(count('webhook_delivery')).toBe(100)
  const again = new Webhooks({
    store,
    now: time.now,
    steadyNow: time.now,
    schedule: time.schedule,
    random: () => 0,
    log: () => undefined,
    node: { name: 'a' },
    randomBytes: (size) => Buffer.alloc(size, 2),
    resolve: () => Promise.reject(new Error('ENOTFOUND')),
    allowPrivate: false,
  })
  expect(await again.endpoints.active()).toEqual([])
  await again.reload()
  again.start()
  await turnOfEventLoop()
  expect([count('webhook_endpoint'), count('webhook_delivery')]).toEqual([0, 0])
  await again.stop()
})
