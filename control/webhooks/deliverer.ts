/**
 * Delivers waiting events at least once. Every endpoint and every tenant has its own limit of
 * concurrent requests, so that slow or dead receivers delay only their own deliveries. Calls never
 * wait for a delivery.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { type Clocks, latest, type Schedule } from '../../schema/clock.ts'
import type { Log } from '../../schema/contracts/log.ts'
import type { DeliveryAttempt, DeliveryStore, DueDelivery } from './delivery-store.ts'
import { type EndpointRow, secretsOf } from './endpoint-store.ts'
import { signatures } from '../../schema/secrets/webhook-signature.ts'
import { LONGEST_RETRY_DELAY_MS, retryDelayMs } from './retry-schedule.ts'
import type { Send, SendResult } from './sender.ts'
import type { WriteQueue } from '../../schema/storage/write-queue.ts'

/** Resolves with the body as it is sent: the same at each attempt. */
export type Complete = (endpoint: EndpointRow, body: string) => Promise<string>

export interface DelivererDeps extends Clocks {
  /** The name under which it takes deliveries. */
  readonly instance: string
  /**
   * How long after a search the next one begins at the latest: other processes write events, and
   * may die.
   */
  readonly longestSleepMs: number
  readonly deliveries: DeliveryStore
  readonly writes: WriteQueue
  readonly send: Send
  /** Adds fields for this endpoint only, which are not stored. */
  readonly complete?: Complete
  /** Receivers may be in private networks: tenants do not see their answers. */
  readonly allowPrivate: boolean
  /** Draws a number from 0 (inclusive) to 1 (exclusive). */
  readonly random: () => number
  readonly schedule: Schedule
  /** The receiver has unsubscribed (410); runs in the transaction that records its response. */
  readonly onGone: (endpointId: number) => Promise<void>
  /** The same, after the commit. */
  readonly afterGone: () => void
  readonly log: Log
}

/**
 * Concurrent requests: per endpoint, of the platform's endpoints, of one tenant's, and of all
 * tenants'.
 */
const maxPerEndpoint = 16
const maxOfPlatform = 64
const maxPerTenant = 32
const maxOfTenants = 256
/** Minimum interval between searches for new deliveries. */
const pauseMs = 10
/** Longer than a request takes, with its repetition and the storing of its result. */
const claimMs = 60_000
/** Delay after a search that has failed. */
const SECOND_MS = 1_000

export class Deliverer {
  readonly #deps: DelivererDeps
  readonly #inFlight = new Map<number, Set<number>>()
  /** Rows of a transaction are read after its commit. */
  readonly #outside = AsyncLocalStorage.snapshot()
  #endpoints: readonly EndpointRow[] = []
  /** Concurrent requests by tenant; null for the platform. */
  readonly #byOwner = new Map<number | null, number>()
  #count = 0
  #turn = 0
  #wakesAt = Infinity
  #cancelWakeUp: (() => void) | undefined
  #state: 'stopped' | 'starting' | 'running' = 'stopped'
  #isSearching = false

  constructor(deps: DelivererDeps) {
    this.#deps = deps
  }

  start(): void {
    this.#state = 'starting'
    this.#bringForward()
  }

  get #isRunning(): boolean {
    return this.#state === 'running'
  }

  /**
   * Sends the unfinished deliveries of the last run again. Its clock may have been ahead, and
   * deliveries must not wait for that time. None is taken before: its claim would be released with
   * theirs.
   */
  #bringForward(): void {
    const { deliveries, writes, steadyNow, instance } = this.#deps
    const now = steadyNow()
    writes.add({
      run: async () => {
        await deliveries.release(instance)
        // Twice, because delays vary.
        await deliveries.bringForward(now, now + 2 * LONGEST_RETRY_DELAY_MS)
      },
      done: () => {
        if (this.#state === 'starting') this.#state = 'running'
        this.wake()
      },
      waitMs: 0,
    })
  }

  stop(): void {
    this.#state = 'stopped'
    this.#cancelWakeUp?.()
    this.#wakesAt = Infinity
  }

  setEndpoints(active: readonly EndpointRow[]): void {
    this.#endpoints = active
    this.wake()
  }

  get inFlight(): number {
    return this.#count
  }

  /** Called when there may be something to deliver. */
  wake(): void {
    if (this.#isRunning) this.#wakeAt(this.#deps.steadyNow() + pauseMs)
  }

  #wakeAt(time: number): void {
    if (time >= this.#wakesAt) return
    this.#cancelWakeUp?.()
    this.#wakesAt = time
    const delayMs = Math.min(
      Math.max(time - this.#deps.steadyNow(), pauseMs),
      this.#deps.longestSleepMs,
    )
    this.#cancelWakeUp = this.#deps.schedule(() => {
      this.#wakesAt = Infinity
      if (this.#isSearching) this.wake()
      else if (this.#isRunning) this.#outside(() => void this.#sendDue())
    }, delayMs)
  }

  /**
   * One search at a time: two could find the same delivery. The first tenant rotates with every
   * turn.
   */
  async #sendDue(): Promise<void> {
    this.#isSearching = true
    try {
      await this.#search()
    } catch (error) {
      this.#deps.log('error', 'webhook: pending deliveries cannot be read', { error })
      this.#wakeLater(SECOND_MS)
    }
    this.#isSearching = false
  }

  async #search(): Promise<void> {
    const { deliveries, steadyNow, longestSleepMs } = this.#deps
    // The first one wakes it.
    if (this.#endpoints.length === 0) return
    const now = steadyNow()
    const times = await deliveries.nextTimes(now)
    const later = [...times.values()].filter((time) => time > now)
    this.#wakeLater(Math.min(longestSleepMs, ...later.map((time) => time - now)))
    const endpoints = this.#endpoints
    const count = endpoints.length
    this.#turn = (this.#turn + 1) % count
    const rotated = [...endpoints.slice(this.#turn), ...endpoints.slice(0, this.#turn)]
    // One after the other: each delivery of a tenant reduces the room for its next one.
    for (const { id } of rotated) if ((times.get(id) ?? Infinity) <= now) await this.#serve(id)
  }

  #wakeLater(delayMs: number): void {
    if (this.#isRunning) this.#wakeAt(this.#deps.steadyNow() + delayMs)
  }

  async #serve(endpointId: number): Promise<void> {
    const { deliveries, steadyNow, instance } = this.#deps
    const before = this.#endpoint(endpointId)
    const room = before === undefined ? 0 : this.#roomFor(before)
    // A response calls `wake` again.
    if (room <= 0) return
    // This set is older than the read: a result that is stored meanwhile still reads as waiting.
    const busy = new Set(this.#inFlight.get(endpointId))
    const now = steadyNow()
    const claim = { instance, now, until: now + claimMs }
    const taken = await deliveries.take(endpointId, claim, room, busy)
    // The endpoint as it is now.
    const endpoint = this.#endpoint(endpointId)
    if (!this.#isRunning || endpoint === undefined) return
    for (const delivery of taken) void this.#deliver(endpoint, delivery)
  }

  #endpoint(id: number): EndpointRow | undefined {
    return this.#endpoints.find((endpoint) => endpoint.id === id)
  }

  #roomFor({ id, tenant_id: tenantId }: EndpointRow): number {
    const ofEndpoint = maxPerEndpoint - (this.#inFlight.get(id)?.size ?? 0)
    const ofPlatform = this.#byOwner.get(null) ?? 0
    if (tenantId === null) return Math.min(ofEndpoint, maxOfPlatform - ofPlatform)
    const own = this.#byOwner.get(tenantId) ?? 0
    return Math.min(ofEndpoint, maxPerTenant - own, maxOfTenants - (this.#count - ofPlatform))
  }

  async #deliver(endpoint: EndpointRow, delivery: DueDelivery): Promise<void> {
    this.#take(endpoint, delivery.id)
    const sent = await this.#send(endpoint, delivery).catch((error: unknown): SendResult => ({
      kind: 'failed',
      reason: String(error),
    }))
    // Deliveries in flight at the end are repeated after the next start.
    if (this.#isRunning) this.#note(endpoint, delivery, sent)
  }

  async #send(endpoint: EndpointRow, delivery: DueDelivery): Promise<SendResult> {
    const { now, send, complete } = this.#deps
    const { message_id: id } = delivery
    const body = (await complete?.(endpoint, delivery.body)) ?? delivery.body
    const seconds = Math.floor(now() / 1_000)
    const headers = {
      'Content-Type': 'application/json',
      'User-Agent': 'Tollgate',
      'webhook-id': id,
      'webhook-timestamp': String(seconds),
      'webhook-signature': signatures(secretsOf(endpoint, latest(this.#deps)), id, seconds, body),
    }
    const sent = await send(endpoint.url, headers, body)
    // A receiver may send back what it was sent, and the list of deliveries shows answers.
    return sent.kind === 'answered' && body !== delivery.body ? { ...sent, excerpt: '' } : sent
  }

  /**
   * It stays in flight until its new state is committed: the stored state is outdated until then.
   */
  #note(endpoint: EndpointRow, delivery: DueDelivery, sent: SendResult): void {
    const isGone = sent.kind === 'answered' && sent.status === 410
    const attempt = this.#judge(endpoint, delivery, sent)
    if (attempt.state !== 'delivered')
      this.#deps.log('info', 'webhook: not delivered', {
        endpoint: endpoint.id,
        webhook_id: delivery.message_id,
        status: attempt.status,
        error: attempt.error,
      })
    this.#deps.writes.add({
      run: async () => {
        await this.#deps.deliveries.record(attempt, this.#deps.instance)
        if (isGone) await this.#deps.onGone(endpoint.id)
      },
      done: () => {
        this.#release(endpoint, delivery.id)
        if (isGone) this.#deps.afterGone()
        this.wake()
      },
    })
  }

  #judge(
    { tenant_id: owner }: EndpointRow,
    { id, attempts }: DueDelivery,
    sent: SendResult,
  ): DeliveryAttempt {
    const now = this.#deps.now()
    const steadyNow = this.#deps.steadyNow()
    const status = sent.kind === 'answered' ? sent.status : null
    const isReadable = owner === null || !this.#deps.allowPrivate
    const outcome = {
      id,
      now,
      status,
      error: sent.kind === 'failed' ? sent.reason : null,
      answer: sent.kind === 'answered' && isReadable ? sent.excerpt : null,
    }
    if (status !== null && status >= 200 && status < 300)
      return { ...outcome, state: 'delivered', nextAttemptAt: steadyNow }
    const retryAfterMs = sent.kind === 'answered' ? (sent.retryAfterMs ?? 0) : 0
    const waitMs =
      status === 410 ? undefined : retryDelayMs(attempts, retryAfterMs, this.#deps.random)
    if (waitMs === undefined) return { ...outcome, state: 'failed', nextAttemptAt: steadyNow }
    return { ...outcome, state: 'pending', nextAttemptAt: steadyNow + waitMs }
  }

  #take({ id, tenant_id: owner }: EndpointRow, deliveryId: number): void {
    const busy = this.#inFlight.get(id) ?? new Set<number>()
    this.#inFlight.set(id, busy.add(deliveryId))
    this.#byOwner.set(owner, (this.#byOwner.get(owner) ?? 0) + 1)
    this.#count += 1
  }

  #release({ id, tenant_id: owner }: EndpointRow, deliveryId: number): void {
    const busy = this.#inFlight.get(id)
    if (busy?.delete(deliveryId) !== true) return
    this.#count -= 1
    const rest = (this.#byOwner.get(owner) ?? 1) - 1
    if (rest === 0) this.#byOwner.delete(owner)
    else this.#byOwner.set(owner, rest)
    if (busy.size === 0) this.#inFlight.delete(id)
  }
}
