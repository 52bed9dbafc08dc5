/**
 * Delivers what waits, at least once. Every endpoint has room of its own, and so has every tenant, so that one
 * whose receivers are slow or dead delays only its own deliveries; calls never wait for any of it.
 */
import { type Clocks, latest, type Schedule } from '../../schema/clock.ts'
import type { Log } from '../../schema/contracts/log.ts'
import type { GroupCommit } from '../../schema/group-commit.ts'
import type { Attempt, DeliveryStore, DueDelivery } from './delivery-store.ts'
import { type EndpointRow, secretsOf } from './endpoint-store.ts'
import type { Send, Sent } from './sender.ts'
import { signatures } from './standard-signature.ts'

export interface DelivererDeps extends Clocks {
  readonly deliveries: DeliveryStore
  readonly group: GroupCommit
  readonly send: Send
  /** From 0 up to 1. */
  readonly random: () => number
  readonly schedule: Schedule
  /** The receiver wants no more (410); runs inside the transaction that records its answer. */
  readonly onGone: (endpointId: number) => void
  /** The same, committed. */
  readonly afterGone: () => void
  readonly log: Log
}

/** Requests under way at once: per endpoint, of the platform's endpoints, of those of one tenant, and of all tenants. */
const maxPerEndpoint = 16
const maxOfPlatform = 64
const maxPerTenant = 32
const maxOfTenants = 256
/** New deliveries are looked for at most so often. */
const pauseMs = 10
/** What another process has written is noticed this soon. */
const longestSleepMs = 60_000
const second = 1_000
const minute = 60 * second
const hour = 60 * minute
const longestDelayMs = 24 * hour
/** Between the attempts: ten of them, over three days. */
const delaysMs: readonly number[] = [
  ...[5 * second, minute, 5 * minute, 30 * minute],
  ...[2 * hour, 6 * hour, 12 * hour, longestDelayMs, longestDelayMs],
]
/** A receiver may put off its next attempt for so long. */
const longestRetryAfterMs = hour

export class Deliverer {
  readonly #deps: DelivererDeps
  readonly #inFlight = new Map<number, Set<number>>()
  #endpoints: readonly EndpointRow[] = []
  /** Requests under way by tenant; null: of the platform. */
  readonly #byOwner = new Map<number | null, number>()
  #count = 0
  #turn = 0
  #wakesAt = Infinity
  #cancelWakeUp: (() => void) | undefined
  #isRunning = false

  constructor(deps: DelivererDeps) {
    this.#deps = deps
  }

  start(): void {
    this.#isRunning = true
    this.#bringForward()
    this.wake()
  }

  /** The clock of the last run may have been ahead: a delivery must not wait for that time to come. */
  #bringForward(): void {
    const { deliveries, group, steadyNow } = this.#deps
    const now = steadyNow()
    group.add({
      // Twice, because delays vary.
      run: () => deliveries.bringForward(now, now + 2 * longestDelayMs),
      done: () => this.wake(),
    })
  }

  stop(): void {
    this.#isRunning = false
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

  /** There may be something to deliver. */
  wake(): void {
    if (this.#isRunning) this.#wakeAt(this.#deps.steadyNow() + pauseMs)
  }

  #wakeAt(time: number): void {
    if (time >= this.#wakesAt) return
    this.#cancelWakeUp?.()
    this.#wakesAt = time
    const delayMs = Math.min(Math.max(time - this.#deps.steadyNow(), pauseMs), longestSleepMs)
    this.#cancelWakeUp = this.#deps.schedule(() => {
      this.#wakesAt = Infinity
      if (this.#isRunning) this.#sendDue()
    }, delayMs)
  }

  /** Who comes first changes with every turn. */
  #sendDue(): void {
    const count = this.#endpoints.length
    this.#turn = count === 0 ? 0 : (this.#turn + 1) % count
    for (let index = 0; index < count; index += 1) {
      const endpoint = this.#endpoints[(this.#turn + index) % count]
      if (endpoint !== undefined) this.#serve(endpoint)
    }
  }

  #serve(endpoint: EndpointRow): void {
    const now = this.#deps.steadyNow()
    const busy = this.#inFlight.get(endpoint.id) ?? new Set<number>()
    const room = Math.min(maxPerEndpoint - busy.size, this.#roomOf(endpoint.tenant_id))
    // An answer will wake this again.
    if (room <= 0) return
    const due = this.#deps.deliveries
      .due(endpoint.id, now, room + busy.size)
      .filter(({ id }) => !busy.has(id))
      .slice(0, room)
    for (const delivery of due) void this.#deliver(endpoint, delivery)
    if (due.length > 0 || busy.size > 0) return
    const next = this.#deps.deliveries.nextAt(endpoint.id)
    if (next !== null) this.#wakeAt(Math.min(next, now + longestSleepMs))
  }

  #roomOf(tenantId: number | null): number {
    const ofPlatform = this.#byOwner.get(null) ?? 0
    if (tenantId === null) return maxOfPlatform - ofPlatform
    const own = this.#byOwner.get(tenantId) ?? 0
    return Math.min(maxPerTenant - own, maxOfTenants - (this.#count - ofPlatform))
  }

  async #deliver(endpoint: EndpointRow, delivery: DueDelivery): Promise<void> {
    this.#take(endpoint, delivery.id)
    const { now, send } = this.#deps
    const seconds = Math.floor(now() / 1_000)
    const { message_id: id, body } = delivery
    const headers = {
      'Content-Type': 'application/json',
      'User-Agent': 'Tollgate',
      'webhook-id': id,
      'webhook-timestamp': String(seconds),
      'webhook-signature': signatures(secretsOf(endpoint, latest(this.#deps)), id, seconds, body),
    }
    const sent = await send(endpoint.url, headers, body).catch((error: unknown): Sent => ({
      kind: 'failed',
      reason: String(error),
    }))
    // What was under way at the end is told again after the next start.
    if (this.#isRunning) this.#note(endpoint, delivery, sent)
  }

  /** The row counts as in flight until its new state is committed: nobody may read the old one. */
  #note(endpoint: EndpointRow, delivery: DueDelivery, sent: Sent): void {
    const isGone = sent.kind === 'answered' && sent.status === 410
    const attempt = this.#judge(delivery, sent)
    if (attempt.state !== 'delivered')
      this.#deps.log('info', 'webhook: not delivered', {
        endpoint: endpoint.id,
        webhook_id: delivery.message_id,
        status: attempt.status,
        error: attempt.error,
      })
    this.#deps.group.add({
      run: () => {
        this.#deps.deliveries.record(attempt)
        if (isGone) this.#deps.onGone(endpoint.id)
      },
      done: () => {
        this.#release(endpoint, delivery.id)
        if (isGone) this.#deps.afterGone()
        this.wake()
      },
    })
  }

  #judge({ id, attempts }: DueDelivery, sent: Sent): Attempt {
    const now = this.#deps.now()
    const steadyNow = this.#deps.steadyNow()
    const status = sent.kind === 'answered' ? sent.status : null
    const outcome = { id, now, status, error: sent.kind === 'failed' ? sent.reason : null }
    if (status !== null && status >= 200 && status < 300)
      return { ...outcome, state: 'delivered', nextAttemptAt: steadyNow }
    const delayMs = delaysMs[attempts]
    if (status === 410 || delayMs === undefined)
      return { ...outcome, state: 'failed', nextAttemptAt: steadyNow }
    // Up to a quarter more, so that those that failed together do not come back together.
    const jittered = Math.round(delayMs * (1 + 0.25 * this.#deps.random()))
    const asked = sent.kind === 'answered' ? (sent.retryAfterMs ?? 0) : 0
    const waitMs = Math.max(jittered, Math.min(asked, longestRetryAfterMs))
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
