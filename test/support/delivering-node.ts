/** An instance that writes and delivers webhooks in virtual time. */
import { Deliverer } from '../../control/webhooks/deliverer.ts'
import { DeliveryStore } from '../../control/webhooks/delivery-store.ts'
import { EndpointStore } from '../../control/webhooks/endpoint-store.ts'
import { WebhookOutbox } from '../../control/webhooks/outbox.ts'
import type { SendResult } from '../../control/webhooks/sender.ts'
import type { Store } from '../../schema/storage/store.ts'
import { runEach, WriteQueue } from '../../schema/storage/write-queue.ts'
import { start } from './books.ts'
import type { ManualTime } from './manual-time.ts'

interface Options {
  readonly instance: string
  readonly longestSleepMs: number
  readonly allowPrivate?: boolean
  readonly afterGone?: () => void
  /** @param id of the event. @param at milliseconds since `start`. */
  readonly send: (url: string, id: string, at: number) => Promise<SendResult>
}

export function deliveringInstance(
  store: Store,
  time: ManualTime,
  { instance, longestSleepMs, allowPrivate = false, afterGone = () => undefined, send }: Options,
) {
  const { now, schedule } = time
  const clocks = { now, steadyNow: now }
  const endpoints = new EndpointStore(store)
  const deliveries = new DeliveryStore(store)
  const onFailure = (error: unknown): never => {
    throw error
  }
  const deliverer = new Deliverer({
    ...clocks,
    instance,
    longestSleepMs,
    allowPrivate,
    afterGone,
    deliveries,
    schedule,
    writes: new WriteQueue({ store, schedule, run: runEach, onFailure }),
    random: () => 0,
    send: (url, headers) => send(url, headers['webhook-id'] ?? '', now() - start),
    onGone: (id) => endpoints.disable(id, 'gone', now()),
    log: () => undefined,
  })
  const onWrite = () => deliverer.wake()
  const randomBytes = (size: number) => Buffer.alloc(size, instance)
  const outbox = new WebhookOutbox({ ...clocks, store, onWrite, randomBytes })
  return { endpoints, deliveries, deliverer, outbox }
}
