/** Several instances deliver from one database, in virtual time. */
import { beforeEach, describe, expect, test } from 'vitest'
import type { SendResult } from '../../../control/webhooks/sender.ts'
import type { OutgoingEvent } from '../../../schema/contracts/engine.ts'
import type { Store } from '../../../schema/storage/store.ts'
import { all, transaction } from '../../../schema/sql/query.ts'
import { start } from '../../support/books.ts'
import { deferred } from '../../support/deferred.ts'
import { deliveringInstance } from '../../support/delivering-node.ts'
import { ManualTime } from '../../support/manual-time.ts'
import { hasPostgres } from '../../support/postgres.ts'
import { settling, sharedDatabase } from '../../support/shared-database.ts'

const accepted: SendResult = { kind: 'answered', status: 204, retryAfterMs: undefined, excerpt: '' }
const refused: SendResult = { ...accepted, status: 500 }
const events = (count: number): readonly OutgoingEvent[] =>
  Array.from({ length: count }, (_, n) => ({ type: 'call.ended', tenantId: null, data: { n } }))

interface Request {
  readonly instance: string
  readonly id: string
  readonly at: number
}

describe.runIf(hasPostgres)('webhooks of several instances', () => {
  let time: ManualTime
  let database: Awaited<ReturnType<typeof sharedDatabase>>
  let requests: Request[]
  let instances: Pick<ReturnType<typeof settling<Store>>, 'store' | 'settled'>[]

  async function openInstance(
    name: string,
    answer: () => Promise<SendResult> = async () => accepted,
  ) {
    const { store, settled } = settling(await database.open())
    const { endpoints, deliverer, outbox } = deliveringInstance(store, time, {
      instance: name,
      longestSleepMs: 1_000,
      send: (_, id, at) => {
        requests.push({ instance: name, id, at })
        return answer()
      },
    })
    if (instances.length === 0) {
      const body = { url: 'https://a.example/', events: ['*' as const], description: null }
      await endpoints.insert({ ...body, is_active: true }, 'whsec_AA', null, start)
    }
    const active = await endpoints.active()
    outbox.setEndpoints(active)
    deliverer.setEndpoints(active)
    deliverer.start()
    const write = (written: readonly OutgoingEvent[]) =>
      transaction(store, () => outbox.writeAll(written))
    instances.push({ store, settled })
    return { store, deliverer, outbox, write }
  }

  const pass = async (ms: number, stepMs = 50) => {
    for (let passed = 0; passed < ms; passed += stepMs) {
      time.advance(stepMs)
      // A write of one instance may wake another one.
      for (let turn = 0; turn < 2; turn += 1) for (const { settled } of instances) await settled()
    }
  }
  const states = async () => {
    const [instance] = instances
    const query = instance?.store.db
      .selectFrom('webhook_delivery')
      .select(['state', 'attempts', 'claimed_by'])
      .orderBy('id')
    return instance === undefined || query === undefined ? [] : all(instance.store, query)
  }
  const deliveredOnce = { state: 'delivered', attempts: 1, claimed_by: null }

  beforeEach(async () => {
    time = new ManualTime(start)
    database = await sharedDatabase()
    requests = []
    instances = []
  })

  test('each event is sent once, however many instances look for it', async () => {
    const [a, b, c] = [await openInstance('a'), await openInstance('b'), await openInstance('c')]
    await pass(100)
    await Promise.all([a.write(events(40)), b.write(events(40)), c.write(events(40))])
    await pass(3_000)
    expect(requests.length).toBe(120)
    expect(new Set(requests.map(({ id }) => id)).size).toBe(120)
    expect(await states()).toEqual(Array.from({ length: 120 }, () => deliveredOnce))
  })

  test('an instance sends what another one has written and left within a second', async () => {
    const [a] = [await openInstance('a'), await openInstance('b')]
    await pass(100)
    a.deliverer.stop()
    await a.write(events(3))
    await pass(1_100)
    expect(requests.map(({ instance }) => instance)).toEqual(['b', 'b', 'b'])
  })

  test('what an instance had taken when it died is sent by another one after a minute, with the same id', async () => {
    const a = await openInstance('a', () => new Promise(() => undefined))
    await pass(100)
    await a.write(events(2))
    await pass(100)
    a.deliverer.stop()
    await openInstance('b')
    await pass(58_000, 500)
    expect(requests.map(({ instance }) => instance)).toEqual(['a', 'a'])
    await pass(4_000, 500)
    expect(requests.map(({ instance }) => instance)).toEqual(['a', 'a', 'b', 'b'])
    expect(new Set(requests.map(({ id }) => id)).size).toBe(2)
    expect(await states()).toEqual([deliveredOnce, deliveredOnce])
  })

  test('a late failure of one instance does not undo what another one has delivered', async () => {
    const late = deferred<SendResult>()
    const a = await openInstance('a', () => late.promise)
    await openInstance('b')
    await pass(100)
    await a.write(events(1))
    await pass(100)
    a.deliverer.setEndpoints([])
    await pass(62_000, 500)
    expect(requests.map(({ instance }) => instance)).toEqual(['a', 'b'])
    expect(await states()).toEqual([deliveredOnce])
    late.resolve(refused)
    await pass(1_000)
    expect(await states()).toEqual([deliveredOnce])
  })

  test('an event of a transaction that is rolled back does not exist, and wakes no instance', async () => {
    const a = await openInstance('a')
    await pass(100)
    const write = transaction(a.store, async () => {
      await a.outbox.writeAll(events(2))
      throw new Error('no')
    })
    await expect(write).rejects.toThrow('no')
    await pass(2_000)
    expect([requests, await states()]).toEqual([[], []])
  })
})
