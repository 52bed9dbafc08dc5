/**
 * Accounting webhooks (SPECIFICATION.md §6.2): events of calls, money, nodes and keys, sent to endpoints
 * and signed as Standard Webhooks.
 */
import { type Clocks, earliest, type Schedule } from '../../schema/clock.ts'
import type { Log } from '../../schema/contracts/log.ts'
import { GroupCommit } from '../../schema/group-commit.ts'
import type { LocalStore } from '../../schema/open.ts'
import { transaction } from '../../schema/sql/sync-query.ts'
import { isUnstored } from '../../schema/storage/storage.ts'
import { DeliveryStore, type WebhookBacklog } from './delivery-store.ts'
import { Deliverer } from './deliverer.ts'
import { EndpointStore } from './endpoint-store.ts'
import {
  type EventSink,
  type OutgoingEvent,
  testEventType,
} from '../../schema/contracts/webhook-events.ts'
import { Outbox } from './outbox.ts'
import { Sender } from './sender.ts'
import type { Resolve } from './targets.ts'

export interface WebhooksDeps extends Clocks {
  readonly store: LocalStore
  /** From 0 (inclusive) to 1 (exclusive). */
  readonly random: () => number
  /** Cryptographically secure. */
  readonly randomBytes: (size: number) => Buffer
  readonly schedule: Schedule
  readonly resolve: Resolve
  /** Allows receivers in private networks. */
  readonly allowPrivate: boolean
  readonly log: Log
}

const maintenanceIntervalMs = 60_000
/** Deliveries of a removed endpoint that are deleted at once: about 2 ms. */
const sweepSlice = 200
const sweepPauseMs = 20
/** Retry interval while the database cannot be written. */
const retryMs = 1_000
/** Events examined per turn. */
const pruneSlice = 2_000
/** Every attempt has ended by then; deliveries waiting for an inactive endpoint are deleted too. */
const keptMs = 7 * 86_400_000
/** Delivered events that are kept for inspection. */
const keptEvents = 100_000
/** An endpoint with more waiting deliveries is deactivated. */
const maxPending = 1_000_000

export class Webhooks {
  readonly #deps: WebhooksDeps
  readonly #group: GroupCommit
  readonly #outbox: Outbox
  readonly #sender: Sender
  readonly #deliverer: Deliverer
  readonly endpoints: EndpointStore
  readonly deliveries: DeliveryStore
  #pruned = 0
  #cancelSweep: (() => void) | undefined
  #cancelMaintenance: (() => void) | undefined

  constructor(deps: WebhooksDeps) {
    const { store, schedule, log } = deps
    this.#deps = deps
    this.endpoints = new EndpointStore(store)
    this.deliveries = new DeliveryStore(store)
    this.#group = new GroupCommit({
      ...{ store, schedule },
      onFailure: (error, waiting) =>
        log('error', 'webhook: delivery results cannot be stored', { error, waiting }),
    })
    this.#sender = new Sender(deps)
    this.#deliverer = new Deliverer({
      ...deps,
      deliveries: this.deliveries,
      group: this.#group,
      send: this.#sender.send,
      onGone: (id) => this.endpoints.disable(id, 'gone', deps.now()),
      afterGone: () => this.reload(),
    })
    this.#outbox = new Outbox({ ...deps, onWrite: () => this.#deliverer.wake() })
    this.reload()
  }

  /** The code that makes an event true writes it here, in its own transaction. */
  get sink(): EventSink {
    return this.#outbox
  }

  get allowPrivate(): boolean {
    return this.#deps.allowPrivate
  }

  start(): void {
    this.#deliverer.start()
    this.#cancelMaintenance = this.#deps.schedule(() => this.#maintain(), maintenanceIntervalMs)
    this.#sweep()
  }

  /** Starts no further delivery. Those in flight may be repeated after the next start. */
  stop(): void {
    this.#cancelMaintenance?.()
    this.#cancelSweep?.()
    this.#deliverer.stop()
    this.#sender.close()
    this.#group.flush()
  }

  /** Writes an event that belongs to no transaction, with the next group commit. */
  announce(event: OutgoingEvent): void {
    if (!this.#outbox.wants(event.type, event.tenantId)) return
    this.#group.add({ run: () => this.#outbox.write(event) })
  }

  /** Returns the id of the message. */
  sendTest(endpointId: number): string {
    const data = { endpoint_id: endpointId, note: 'This is a test.' }
    return transaction(this.#deps.store, () =>
      this.#outbox.writeTo([endpointId], testEventType, data),
    )
  }

  retry(deliveryId: number): void {
    this.deliveries.retry(deliveryId, this.#deps.steadyNow())
    this.#deliverer.wake()
  }

  /** It receives nothing more. Its waiting deliveries are deleted in batches: there may be a million. */
  remove(endpointId: number): void {
    this.endpoints.remove(endpointId, this.#deps.now())
    this.reload()
    this.#sweep()
  }

  /** Counts waiting deliveries and the age of the oldest. */
  backlog(): WebhookBacklog {
    return this.deliveries.backlog(this.#deps.now())
  }

  /** Loads the stored endpoints. */
  reload(): void {
    const active = this.endpoints.active((endpoint) =>
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
    return { inFlight: this.#deliverer.inFlight, waitingWrites: this.#group.stats().waiting }
  }

  #maintain(): void {
    this.#cancelMaintenance = this.#deps.schedule(() => this.#maintain(), maintenanceIntervalMs)
    this.#group.add({ run: () => this.#prune() })
    const drowning = this.endpoints
      .active()
      .filter(({ id }) => this.deliveries.hasMorePendingThan(id, maxPending))
    if (drowning.length === 0) return
    this.#group.add({ run: () => this.#disable(drowning), done: () => this.#told(drowning) })
  }

  #disable(endpoints: readonly { readonly id: number }[]): void {
    for (const { id } of endpoints) this.endpoints.disable(id, 'backlog', this.#deps.now())
  }

  #told(drowning: readonly { readonly id: number }[]): void {
    this.#deps.log('error', 'webhook: endpoints deactivated, too many deliveries are waiting', {
      endpoints: drowning.map(({ id }) => id),
    })
    this.reload()
  }

  #sweep(): void {
    this.#cancelSweep?.()
    const pauseMs = this.#sweepSlice()
    this.#cancelSweep =
      pauseMs === undefined ? undefined : this.#deps.schedule(() => this.#sweep(), pauseMs)
  }

  /** When to continue; undefined when nothing remains. */
  #sweepSlice(): number | undefined {
    try {
      const isLeft = transaction(this.#deps.store, () => this.endpoints.sweep(sweepSlice))
      return isLeft ? sweepPauseMs : undefined
    } catch (error) {
      if (isUnstored(error)) return retryMs
      throw error
    }
  }

  #prune(): void {
    const before = earliest(this.#deps) - keptMs
    const upTo = this.deliveries.newestEvent() - keptEvents
    this.#pruned = this.deliveries.prune(this.#pruned, pruneSlice, { before, upTo })
  }
}
