/**
 * Accounting webhooks (SPECIFICATION.md §6.2): events of calls, money, nodes and keys, sent to
 * endpoints and signed as Standard Webhooks.
 */
import { DAY_MS, type Clocks, earliest, type Schedule } from '../../schema/clock.ts'
import type { Log } from '../../schema/contracts/log.ts'
import type { InstanceIdentity } from '../../schema/contracts/instances.ts'
import type { Store } from '../../schema/storage/store.ts'
import { OneAtATime } from '../../schema/one-at-a-time.ts'
import { onOneInstance, transaction } from '../../schema/sql/query.ts'
import { isUnstored } from '../../schema/storage/storage.ts'
import { DeliveryStore, type WebhookBacklog } from './delivery-store.ts'
import { type Complete, Deliverer } from './deliverer.ts'
import { EndpointStore } from './endpoint-store.ts'
import {
  type EventSink,
  type EventType,
  type OutgoingEvent,
  testEventType,
} from '../../schema/contracts/engine.ts'
import { type SideOutbox, WebhookOutbox } from './outbox.ts'
import type { Resolve } from '../../schema/net/http-target.ts'
import { WebhookSender } from './sender.ts'
import { runEach, WriteQueue } from '../../schema/storage/write-queue.ts'

export interface WebhooksDeps extends Clocks {
  readonly store: Store
  /** One process of an installation has this name at a time. */
  readonly instance: Pick<InstanceIdentity, 'name'>
  /** Draws a number from 0 (inclusive) to 1 (exclusive). */
  readonly random: () => number
  /** Cryptographically secure. */
  readonly randomBytes: (size: number) => Buffer
  readonly schedule: Schedule
  readonly resolve: Resolve
  /** Allows receivers in private networks. */
  readonly allowPrivate: boolean
  /** Takes the same events, for alerts. Absent: there are none. */
  readonly beside?: SideOutbox | undefined
  readonly log: Log
}

const maintenanceIntervalMs = 60_000
/** After this sleep, writes of other processes, and deliveries they have left behind, are seen. */
const longestSleepMs = 1_000
/** Deliveries of a removed endpoint that are deleted at once: about 2 ms. */
const sweepSlice = 200
const sweepPauseMs = 20
/** Retry interval while the database cannot be written. */
const retryMs = 1_000
/** Events examined per turn. */
const pruneSlice = 2_000
/** Every attempt has ended by then; deliveries waiting for an inactive endpoint are deleted too. */
const retentionMs = 7 * DAY_MS
/** Delivered events that stay for inspection. */
const maxDeliveredEvents = 100_000
/** An endpoint with more waiting deliveries is deactivated. */
const maxPending = 1_000_000

export class Webhooks {
  readonly #deps: WebhooksDeps
  readonly #writes: WriteQueue
  readonly #outbox: WebhookOutbox
  readonly #sender: WebhookSender
  readonly #deliverer: Deliverer
  readonly endpoints: EndpointStore
  readonly deliveries: DeliveryStore
  readonly #reloads = new OneAtATime(() => this.#load())
  readonly #sweeps = new OneAtATime(() => this.#sweep())
  readonly #maintenance = new OneAtATime(() => this.#maintain())
  #complete: Complete = async (_, body) => body
  #pruned = 0
  #isStopped = false
  /** The last stop: whoever asks for one waits for it. */
  #ending: Promise<void> = Promise.resolve()
  #cancelSweep: (() => void) | undefined
  #cancelMaintenance: (() => void) | undefined

  constructor(deps: WebhooksDeps) {
    const { store, schedule, log } = deps
    this.#deps = deps
    this.endpoints = new EndpointStore(store)
    this.deliveries = new DeliveryStore(store)
    this.#writes = new WriteQueue({
      store,
      schedule,
      run: runEach,
      onFailure: (error, waiting) =>
        log('error', 'webhook: delivery results cannot be stored', { error, waiting }),
    })
    this.#sender = new WebhookSender(deps)
    this.#deliverer = new Deliverer({
      ...deps,
      instance: deps.instance.name,
      longestSleepMs,
      deliveries: this.deliveries,
      writes: this.#writes,
      send: this.#sender.send,
      complete: (endpoint, body) => this.#complete(endpoint, body),
      onGone: (id) => this.endpoints.disable(id, 'gone', deps.now()),
      afterGone: () => this.#reloadSoon(),
    })
    this.#outbox = new WebhookOutbox({ ...deps, onWrite: () => this.#deliverer.wake() })
  }

  /**
   * Calls and money use it: the code that makes an event true writes it here, in its own
   * transaction.
   */
  get sink(): EventSink {
    return this.#outbox
  }

  /** Whether an endpoint of anybody selects this type; false: nothing of it need be kept. */
  selects(type: EventType): boolean {
    return this.#outbox.selects(type)
  }

  /** Writes an event of the API inside the transaction of the caller. */
  write(event: OutgoingEvent): Promise<void> {
    return this.#outbox.writeAll([event])
  }

  /** Sets the function that completes bodies for their endpoint. */
  completeWith(complete: Complete): void {
    this.#complete = complete
  }

  get allowPrivate(): boolean {
    return this.#deps.allowPrivate
  }

  /** Call `reload` first. */
  start(): void {
    this.#isStopped = false
    this.#deliverer.start()
    this.#maintainLater()
    void this.#sweeps.request()
  }

  /** Starts no further delivery. Those in flight may be repeated after the next start. */
  stop(): Promise<void> {
    if (!this.#isStopped) {
      this.#isStopped = true
      this.#ending = this.#stop()
    }
    return this.#ending
  }

  async #stop(): Promise<void> {
    this.#cancelMaintenance?.()
    this.#cancelSweep?.()
    this.#deliverer.stop()
    this.#sender.close()
    for (const work of [this.#sweeps, this.#maintenance]) await work.between(nothing)
    // Else other instances take them when the claims end.
    if (await this.#writes.flush()) await this.deliveries.release(this.#deps.instance.name)
  }

  /** Writes an event that belongs to no transaction, with the next group commit. */
  announce(event: OutgoingEvent): void {
    if (!this.#outbox.wants(event.type, event.tenantId)) return
    this.#writes.add({ run: () => this.#outbox.writeAll([event]) })
  }

  /** Returns the id of the message. */
  sendTest(endpointId: number): Promise<string> {
    const data = { endpoint_id: endpointId, note: 'This is a test.' }
    return transaction(this.#deps.store, () =>
      this.#outbox.writeTo(endpointId, { type: testEventType, data }),
    )
  }

  async retry(deliveryId: number): Promise<void> {
    await this.deliveries.retry(deliveryId, this.#deps.steadyNow())
    this.#deliverer.wake()
  }

  /**
   * Removes an endpoint. Its waiting deliveries are deleted in batches: there may be a million.
   * Resolves with false when the endpoint was removed before.
   */
  async remove(endpointId: number): Promise<boolean> {
    if (!(await this.endpoints.remove(endpointId, this.#deps.now()))) return false
    await this.removed()
    return true
  }

  /** After an endpoint was removed: it gets nothing any more. */
  async removed(): Promise<void> {
    await this.reload()
    await this.#sweeps.request()
  }

  /** Counts waiting deliveries and the age of the oldest. */
  backlog(): Promise<WebhookBacklog> {
    return this.deliveries.backlog(this.#deps.now())
  }

  /** Loads the stored endpoints. */
  reload(): Promise<void> {
    return this.#reloads.request()
  }

  async #load(): Promise<void> {
    const active = await this.endpoints.active((endpoint) =>
      this.#deps.log(
        'error',
        'webhook: the secret of an endpoint is damaged, nothing is delivered to it',
        {
          endpoint,
        },
      ),
    )
    this.#outbox.setEndpoints(active)
    this.#deliverer.setEndpoints(active)
  }

  stats(): { readonly inFlight: number; readonly waitingWrites: number } {
    return { inFlight: this.#deliverer.inFlight, waitingWrites: this.#writes.waiting }
  }

  #reloadSoon(): void {
    this.reload().catch((error: unknown) =>
      this.#deps.log('error', 'webhook: the endpoints cannot be read', { error }),
    )
  }

  #maintainLater(): void {
    const { schedule, log } = this.#deps
    this.#cancelMaintenance = schedule(() => {
      this.#maintainLater()
      this.#maintenance.request().catch((error: unknown) => {
        // Then the next time.
        if (!isUnstored(error)) log('error', 'webhook: old events cannot be deleted', { error })
      })
    }, maintenanceIntervalMs)
  }

  async #maintain(): Promise<void> {
    if (this.#isStopped) return
    void this.#sweeps.request()
    const overloaded: number[] = []
    for (const { id } of await this.endpoints.active())
      if (await this.deliveries.hasMorePendingThan(id, maxPending)) overloaded.push(id)
    const done = await onOneInstance(this.#deps.store, 'webhooks', async () => {
      for (const id of overloaded) await this.endpoints.disable(id, 'backlog', this.#deps.now())
      return this.#prune()
    })
    if (done.kind === 'elsewhere') return
    this.#pruned = done.result
    if (overloaded.length === 0) return
    this.#deps.log('error', 'webhook: endpoints deactivated, too many deliveries are waiting', {
      endpoints: overloaded,
    })
    this.#reloadSoon()
  }

  async #sweep(): Promise<void> {
    const pauseMs = await this.#sweepSlice()
    if (pauseMs === undefined || this.#isStopped) return
    this.#cancelSweep?.()
    this.#cancelSweep = this.#deps.schedule(() => void this.#sweeps.request(), pauseMs)
  }

  /** When to continue; undefined when nothing remains. */
  async #sweepSlice(): Promise<number | undefined> {
    const { store, log } = this.#deps
    try {
      const swept = await onOneInstance(store, 'removedEndpoints', () =>
        this.endpoints.sweep(sweepSlice),
      )
      if (swept.kind === 'elsewhere') return retryMs
      return swept.result ? sweepPauseMs : undefined
    } catch (error) {
      if (!isUnstored(error))
        log('error', 'webhook: a removed endpoint cannot be deleted', { error })
      return isUnstored(error) ? retryMs : maintenanceIntervalMs
    }
  }

  /** Resolves with where to continue. */
  async #prune(): Promise<number> {
    const before = earliest(this.#deps) - retentionMs
    const upTo = (await this.deliveries.newestEvent()) - maxDeliveredEvents
    return this.deliveries.prune(this.#pruned, pruneSlice, { before, upTo })
  }
}

const nothing = async (): Promise<void> => undefined
