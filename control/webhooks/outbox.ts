/**
 * The outbox of events. Events are written in the transaction that makes them true, so that an event is
 * sent if and only if it happened.
 */
import type { Clocks } from '../../schema/clock.ts'
import { timeToText } from '../../schema/columns.ts'
import { compile, type Param } from '../../schema/sql/compiled.ts'
import type { Store } from '../../schema/open.ts'
import { type EndpointRow, typesOf } from './endpoint-store.ts'
import type { EventSink, EventType, OutgoingEvent } from '../../schema/contracts/webhook-events.ts'

export interface OutboxDeps extends Clocks {
  readonly store: Store
  readonly randomBytes: (size: number) => Buffer
  /** Something was written, but is not committed yet. */
  readonly onWrite: () => void
}

interface Listener {
  readonly id: number
  readonly tenantId: number | null
}

export class Outbox implements EventSink {
  readonly #deps: OutboxDeps
  readonly #statements: ReturnType<typeof prepare>
  readonly #newId: () => string
  #listeners = new Map<EventType | '*', readonly Listener[]>()

  constructor(deps: OutboxDeps) {
    this.#deps = deps
    this.#statements = prepare(deps.store)
    this.#newId = idsFrom(deps.randomBytes)
  }

  /** Updates the subscriptions. */
  setEndpoints(endpoints: readonly EndpointRow[]): void {
    const listeners = new Map<EventType | '*', Listener[]>()
    for (const endpoint of endpoints)
      for (const type of typesOf(endpoint)) {
        const listener = { id: endpoint.id, tenantId: endpoint.tenant_id }
        listeners.set(type, [...(listeners.get(type) ?? []), listener])
      }
    this.#listeners = listeners
  }

  wants(type: EventType, tenantId: number | null): boolean {
    if (this.#listeners.size === 0) return false
    return hears(this.#listeners.get(type), tenantId) || hears(this.#listeners.get('*'), tenantId)
  }

  write({ type, tenantId, data }: OutgoingEvent): void {
    const listeners = new Set(
      [...(this.#listeners.get(type) ?? []), ...(this.#listeners.get('*') ?? [])]
        .filter((listener) => isFor(listener, tenantId))
        .map(({ id }) => id),
    )
    if (listeners.size > 0) this.writeTo([...listeners], type, data)
  }

  /** Writes it for these endpoints, whatever their subscriptions. Returns the event's id. */
  writeTo(endpointIds: readonly number[], type: string, data: OutgoingEvent['data']): string {
    const now = this.#deps.now()
    const messageId = this.#newId()
    const body = JSON.stringify({ type, timestamp: timeToText(now), data })
    const event = this.#statements.event.run({ messageId, type, body, now })
    const eventId = Number(event.lastInsertRowid)
    for (const endpointId of endpointIds)
      this.#statements.delivery.run({ endpointId, eventId, now: this.#deps.steadyNow() })
    this.#deps.onWrite()
    return messageId
  }
}

const isFor = (listener: Listener, tenantId: number | null): boolean =>
  listener.tenantId === null || listener.tenantId === tenantId

const hears = (listeners: readonly Listener[] | undefined, tenantId: number | null): boolean =>
  listeners?.some((listener) => isFor(listener, tenantId)) === true

/** Unique across restarts by a random start, without random bytes per event. */
function idsFrom(randomBytes: (size: number) => Buffer): () => string {
  const start = randomBytes(15).toString('base64url')
  let count = 0
  return () => `msg_${start}.${(count += 1).toString(36)}`
}

function prepare(store: Store) {
  return {
    event: compile(
      store,
      (db, param: Param<{ messageId: string; type: string; body: string; now: number }>) =>
        db.insertInto('webhook_event').values({
          message_id: param('messageId'),
          type: param('type'),
          body: param('body'),
          created_at: param('now'),
        }),
    ),
    delivery: compile(
      store,
      (db, param: Param<{ endpointId: number; eventId: number; now: number }>) =>
        // A deleted endpoint must not prevent a call from being stored.
        db
          .insertInto('webhook_delivery')
          .columns(['endpoint_id', 'event_id', 'next_attempt_at'])
          .expression((eb) =>
            eb
              .selectFrom('webhook_endpoint')
              .select((row) => [
                'webhook_endpoint.id',
                row.val(param('eventId')).as('event_id'),
                row.val(param('now')).as('next_attempt_at'),
              ])
              .where('webhook_endpoint.id', '=', param('endpointId')),
          ),
    ),
  }
}
