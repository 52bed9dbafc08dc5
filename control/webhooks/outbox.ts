/**
 * The outbox of events. Events are written in the transaction that makes them true, so that an event is
 * sent if and only if it happened.
 */
import type { Kysely, Selectable } from 'kysely'
import type { WebhookEventTable } from '../../schema/tables/webhooks.ts'
import type { Clocks } from '../../schema/clock.ts'
import { timeToText } from '../../schema/columns.ts'
import type { Database } from '../../schema/database.ts'
import type { Store } from '../../schema/open.ts'
import { all, execute, type Param, prepare } from '../../schema/sql/query.ts'
import { type EndpointRow, typesOf } from './endpoint-store.ts'
import type { EventSink, EventType, OutgoingEvent } from '../../schema/contracts/webhook-events.ts'

export interface OutboxDeps extends Clocks {
  readonly store: Store
  readonly randomBytes: (size: number) => Buffer
  /** Called after the commit of what was written. */
  readonly onWrite: () => void
}

export class Outbox implements EventSink {
  readonly #deps: OutboxDeps
  readonly #ofApi: ReturnType<typeof apiStatements>
  readonly #newId: () => string
  #endpoints = new Map<EventType | '*', readonly EndpointRow[]>()

  constructor(deps: OutboxDeps) {
    this.#deps = deps
    this.#ofApi = apiStatements(deps.store)
    this.#newId = idsFrom(deps.randomBytes)
  }

  /** Updates the subscriptions. */
  setEndpoints(endpoints: readonly EndpointRow[]): void {
    const byType = new Map<EventType | '*', readonly EndpointRow[]>()
    for (const endpoint of endpoints)
      for (const type of typesOf(endpoint))
        byType.set(type, [...(byType.get(type) ?? []), endpoint])
    this.#endpoints = byType
  }

  wants(type: EventType, tenantId: number | null): boolean {
    return this.#endpoints.size > 0 && this.#endpointsOf({ type, tenantId }).length > 0
  }

  async writeAll(events: readonly OutgoingEvent[]): Promise<void> {
    const addressed = events.flatMap((event) => {
      const endpointIds = this.#endpointsOf(event)
      return endpointIds.length === 0 ? [] : [{ row: this.#rowOf(event), endpointIds }]
    })
    for (let start = 0; start < addressed.length; start += EVENTS_OF_A_STATEMENT)
      await this.#writeSome(addressed.slice(start, start + EVENTS_OF_A_STATEMENT))
    if (addressed.length > 0) this.#wakeAfterCommit()
  }

  async #writeSome(events: readonly AddressedEvent[]): Promise<void> {
    const { store, steadyNow } = this.#deps
    const query = store.db.insertInto('webhook_event').values(events.map(({ row }) => row))
    const ids = await all(store, query.returning(['id', 'message_id']))
    const idOf = new Map(ids.map(({ id, message_id: messageId }) => [messageId, id]))
    const groups = new Map<string, { endpointIds: readonly number[]; eventIds: number[] }>()
    for (const { endpointIds, row } of events) {
      const id = idOf.get(row.message_id)
      if (id === undefined) throw new Error('an INSERT returned no row')
      const group = groups.get(endpointIds.join()) ?? { endpointIds, eventIds: [] }
      group.eventIds.push(id)
      groups.set(endpointIds.join(), group)
    }
    for (const { endpointIds, eventIds } of groups.values())
      await execute(store, insertDeliveries(store.db, endpointIds, eventIds, steadyNow()))
  }

  #wakeAfterCommit(): void {
    this.#deps.store.statements.afterCommit(this.#deps.onWrite)
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
    this.#wakeAfterCommit()
    return row.message_id
  }

  #endpointsOf({ type, tenantId }: Pick<OutgoingEvent, 'type' | 'tenantId'>): readonly number[] {
    const subscribed = [...(this.#endpoints.get(type) ?? []), ...(this.#endpoints.get('*') ?? [])]
    const ids = subscribed.flatMap(({ id, tenant_id: owner }) =>
      owner === null || owner === tenantId ? [id] : [],
    )
    return [...new Set(ids)]
  }

  #rowOf({ type, data }: { readonly type: string; readonly data: object }): NewEvent {
    const now = this.#deps.now()
    const body = JSON.stringify({ type, timestamp: timeToText(now), data })
    return { message_id: this.#newId(), type, body, created_at: now }
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

/** Unique across restarts by a random start, without random bytes per event. */
function idsFrom(randomBytes: (size: number) => Buffer): () => string {
  const start = randomBytes(15).toString('base64url')
  let count = 0
  return () => `msg_${start}.${(count += 1).toString(36)}`
}

/** Each has five parameters, of 32,766 that SQLite takes. */
const EVENTS_OF_A_STATEMENT = 500

interface AddressedEvent {
  readonly row: NewEvent
  readonly endpointIds: readonly number[]
}

type NewEvent = Omit<Selectable<WebhookEventTable>, 'id'>

interface NewDelivery {
  readonly endpointId: number
  readonly eventId: number
  readonly now: number
}

const apiStatements = (store: Store) => ({
  event: prepare(store, insertEvent),
  delivery: prepare(store, insertDelivery),
})

const insertEvent = (db: Kysely<Database>, param: Param<NewEvent>) =>
  db
    .insertInto('webhook_event')
    .values({
      message_id: param('message_id'),
      type: param('type'),
      body: param('body'),
      created_at: param('created_at'),
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

/** Each of the events to each of the endpoints, as `insertDelivery`. */
const insertDeliveries = (
  db: Kysely<Database>,
  endpointIds: readonly number[],
  eventIds: readonly number[],
  now: number,
) =>
  db
    .insertInto('webhook_delivery')
    .columns(['endpoint_id', 'event_id', 'next_attempt_at'])
    .expression((eb) =>
      eb
        .selectFrom(['webhook_endpoint', 'webhook_event'])
        .select((row) => [
          'webhook_endpoint.id as endpoint_id',
          'webhook_event.id as event_id',
          row.val(now).as('next_attempt_at'),
        ])
        .where('webhook_endpoint.id', 'in', endpointIds)
        .where('webhook_event.id', 'in', eventIds)
        .orderBy('webhook_event.id')
        .orderBy('webhook_endpoint.id'),
    )
