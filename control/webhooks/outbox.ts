/**
 * The outbox of events. Events are written in the transaction that makes them true, so that an event is
 * sent if and only if it happened.
 */
import type { Kysely } from 'kysely'
import type { Clocks } from '../../schema/clock.ts'
import { timeToText } from '../../schema/columns.ts'
import type { Database } from '../../schema/database.ts'
import { compile, type Param } from '../../schema/sql/compiled.ts'
import type { LocalStore, Store } from '../../schema/open.ts'
import { prepare } from '../../schema/sql/prepared.ts'
import { type EndpointRow, typesOf } from './endpoint-store.ts'
import type { EventSink, EventType, OutgoingEvent } from '../../schema/contracts/webhook-events.ts'

export interface OutboxDeps extends Clocks {
  readonly store: LocalStore
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
  readonly #ofCalls: ReturnType<typeof callStatements>
  readonly #ofApi: ReturnType<typeof apiStatements>
  readonly #newId: () => string
  #listeners = new Map<EventType | '*', readonly Listener[]>()

  constructor(deps: OutboxDeps) {
    this.#deps = deps
    this.#ofCalls = callStatements(deps.store)
    this.#ofApi = apiStatements(deps.store)
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

  /** Of a call or of money: inside the transaction that is open on the handle. */
  write(event: OutgoingEvent): void {
    const endpointIds = this.#endpointsOf(event)
    if (endpointIds.length === 0) return
    const row = this.#ofCalls.event.get(this.#rowOf(event))
    for (const delivery of this.#deliveriesOf(row, endpointIds))
      this.#ofCalls.delivery.run(delivery)
    this.#deps.onWrite()
  }

  /** Of calls and of money: inside the transaction of the caller. */
  async writeAll(events: readonly OutgoingEvent[]): Promise<void> {
    for (const event of events) await this.writeOfApi(event)
  }

  /** Of the API: inside the transaction of the caller. */
  async writeOfApi(event: OutgoingEvent): Promise<void> {
    const endpointIds = this.#endpointsOf(event)
    if (endpointIds.length > 0) await this.writeTo(endpointIds, event)
  }

  /** Writes it for these endpoints, whatever their subscriptions. Returns the event's id. */
  async writeTo(
    endpointIds: readonly number[],
    event: Pick<OutgoingEvent, 'data'> & { readonly type: string },
  ): Promise<string> {
    const row = this.#rowOf(event)
    const deliveries = this.#deliveriesOf(await this.#ofApi.event.get(row), endpointIds)
    for (const delivery of deliveries) await this.#ofApi.delivery.run(delivery)
    this.#deps.onWrite()
    return row.messageId
  }

  #endpointsOf({ type, tenantId }: OutgoingEvent): readonly number[] {
    const listeners = [...(this.#listeners.get(type) ?? []), ...(this.#listeners.get('*') ?? [])]
    const ids = listeners.filter((listener) => isFor(listener, tenantId)).map(({ id }) => id)
    return [...new Set(ids)]
  }

  #rowOf({ type, data }: { readonly type: string; readonly data: object }): NewEvent {
    const now = this.#deps.now()
    const body = JSON.stringify({ type, timestamp: timeToText(now), data })
    return { messageId: this.#newId(), type, body, now }
  }

  #deliveriesOf(
    event: { readonly id: number } | undefined,
    endpointIds: readonly number[],
  ): readonly NewDelivery[] {
    if (event === undefined) throw new Error('an INSERT returned no row')
    const now = this.#deps.steadyNow()
    return endpointIds.map((endpointId) => ({ endpointId, eventId: event.id, now }))
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

interface NewEvent {
  readonly messageId: string
  readonly type: string
  readonly body: string
  readonly now: number
}

interface NewDelivery {
  readonly endpointId: number
  readonly eventId: number
  readonly now: number
}

/** The rows are the same; calls write them at once on the SQLite of their node. */
const callStatements = (store: LocalStore) => ({
  event: compile(store, insertEvent),
  delivery: compile(store, insertDelivery),
})

const apiStatements = (store: Store) => ({
  event: prepare(store, insertEvent),
  delivery: prepare(store, insertDelivery),
})

const insertEvent = (db: Kysely<Database>, param: Param<NewEvent>) =>
  db
    .insertInto('webhook_event')
    .values({
      message_id: param('messageId'),
      type: param('type'),
      body: param('body'),
      created_at: param('now'),
    })
    .returning('id')

/** A deleted endpoint must not prevent a call from being stored. */
const insertDelivery = (db: Kysely<Database>, param: Param<NewDelivery>) =>
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
    )
