/**
 * Accounting webhooks (SPECIFICATION.md §6.2): events of calls, money, nodes and keys, signed as Standard
 * Webhooks, told to whoever listens.
 */
import { type Clocks, earliest, type Schedule } from '../../schema/clock.ts'
import type { Log } from '../../schema/contracts/log.ts'
import { GroupCommit } from '../../schema/group-commit.ts'
import type { Store } from '../../schema/open.ts'
import { transaction } from '../../schema/query.ts'
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
  readonly store: Store
  /** From 0 up to 1. */
  readonly random: () => number
  /** Cryptographically secure. */
  readonly randomBytes: (size: number) => Buffer
  readonly schedule: Schedule
  readonly resolve: Resolve
  /** Receivers inside private networks are allowed. */
  readonly allowPrivate: boolean
  readonly log: Log
}

const housekeepingMs = 60_000
/** Of a removed endpoint, so many deliveries go at once: about 2 ms. */
const sweepSlice = 200
const sweepPauseMs = 20
/** The database takes nothing at present. */
const retryMs = 1_000
/** Events looked at per turn. */
const pruneSlice = 2_000
/** Every attempt is over by then; what waits for an endpoint that is switched off goes too. */
const keptMs = 7 * 86_400_000
/** Of what everybody has got, this many events are kept to look at. */
const keptEvents = 100_000
/** An endpoint for which more waits is switched off. */
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
  #cancelHousekeeping: (() => void) | undefined

  constructor(deps: WebhooksDeps) {
    const { store, schedule, log } = deps
    this.#deps = deps
    this.endpoints = new EndpointStore(store)
    this.deliveries = new DeliveryStore(store)
    this.#group = new GroupCommit({
      ...{ store, schedule },
      onFailure: (error, waiting) =>
        log('error', 'webhook: what was delivered cannot be recorded', { error, waiting }),
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

  /** Where whatever makes an event true writes it, in its own transaction. */
  get sink(): EventSink {
    return this.#outbox
  }

  get allowPrivate(): boolean {
    return this.#deps.allowPrivate
  }

  start(): void {
    this.#deliverer.start()
    this.#cancelHousekeeping = this.#deps.schedule(() => this.#keepHouse(), housekeepingMs)
    this.#sweep()
  }

  /** Takes no further delivery up. Those under way may arrive a second time after the next start. */
  stop(): void {
    this.#cancelHousekeeping?.()
    this.#cancelSweep?.()
    this.#deliverer.stop()
    this.#sender.close()
    this.#group.flush()
  }

  /** An event of something that is in no transaction: it is written with the next group. */
  announce(event: OutgoingEvent): void {
    if (!this.#outbox.wants(event.type, event.tenantId)) return
    this.#group.add({ run: () => this.#outbox.write(event) })
  }

  /** Answers the id of the message that is on its way. */
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

  /** Hears nothing more from now on. What waited for it goes bit by bit: there may be a million of it. */
  remove(endpointId: number): void {
    this.endpoints.remove(endpointId, this.#deps.now())
    this.reload()
    this.#sweep()
  }

  /** What waits for receivers, and how long the oldest of it does. */
  backlog(): WebhookBacklog {
    return this.deliveries.backlog(this.#deps.now())
  }

  /** Takes over the endpoints as they are stored now. */
  reload(): void {
    const active = this.endpoints.active((endpoint) =>
      this.#deps.log('error', 'webhook: the secret of an endpoint is damaged, it gets nothing', {
        endpoint,
      }),
    )
    this.#outbox.setEndpoints(active)
    this.#deliverer.setEndpoints(active)
  }

  stats(): { readonly inFlight: number; readonly waitingWrites: number } {
    return { inFlight: this.#deliverer.inFlight, waitingWrites: this.#group.stats().waiting }
  }

  #keepHouse(): void {
    this.#cancelHousekeeping = this.#deps.schedule(() => this.#keepHouse(), housekeepingMs)
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
    this.#deps.log('error', 'webhook: endpoints are switched off, too much waits for them', {
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

  /** When to go on; undefined: nothing is left. */
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
