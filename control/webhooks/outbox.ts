/**
 * The outbox of events. Events are written in the transaction that makes them true, so that an
 * event is sent if and only if it happened.
 */
import type { Selectable } from 'kysely'
import type { WebhookEventTable } from '../../schema/tables/changes.ts'
import type { Clocks } from '../../schema/clock.ts'
import { timeToText } from '../../schema/columns.ts'
import type { Store } from '../../schema/storage/store.ts'
import { type EndpointRow, typesOf } from './endpoint-store.ts'
import type { EventSink, EventType, OutgoingEvent } from '../../schema/contracts/engine.ts'

/** Another reader of the same events, such as the rules of alerts. */
export interface SideOutbox extends EventSink {
  /** Whether anybody's rule looks at this type. */
  selects(type: EventType): boolean
}

export interface OutboxDeps extends Clocks {
  readonly store: Store
  readonly randomBytes: (size: number) => Buffer
  /** Called after the commit of what was written. */
  readonly onWrite: () => void
  /** Takes the same events, for others than webhooks. Absent: nobody does. */
  readonly beside?: SideOutbox | undefined
}

export class WebhookOutbox implements EventSink {
  readonly #deps: OutboxDeps
  readonly #statements: ReturnType<typeof prepare>
  readonly #newId: () => string
  #endpoints = new Map<EventType | '*', readonly EndpointRow[]>()

  constructor(deps: OutboxDeps) {
    this.#deps = deps
    this.#statements = prepare(deps.store)
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
    if (this.#deps.beside?.wants(type, tenantId) === true) return true
    return this.#endpoints.size > 0 && this.#endpointsOf({ type, tenantId }).length > 0
  }

  /** Whether an endpoint or a rule of anybody selects this type. */
  selects(type: EventType): boolean {
    if (this.#deps.beside?.selects(type) === true) return true
    return this.#endpoints.has(type) || this.#endpoints.has('*')
  }

  async writeAll(events: readonly OutgoingEvent[]): Promise<void> {
    await this.#write(events.flatMap((event) => this.#addressed(event)))
    await this.#deps.beside?.writeAll(events)
  }

  /** Endpoints that are told more than others get an event of their own. */
  #addressed(event: OutgoingEvent): readonly AddressedEvent[] {
    const { confidential } = event
    const all = this.#endpointsOf(event)
    const { type, data } = event
    if (confidential === undefined) return this.#rowFor(all, { type, data })
    const isTold = new Set(this.#endpointsOf({ type, tenantId: confidential.tenantId }))
    const more = { type, data: { ...data, ...confidential.data } }
    return [
      ...this.#rowFor(
        all.filter((id) => isTold.has(id)),
        more,
      ),
      ...this.#rowFor(
        all.filter((id) => !isTold.has(id)),
        { type, data },
      ),
    ]
  }

  #rowFor(
    endpointIds: readonly number[],
    event: Pick<OutgoingEvent, 'type' | 'data'>,
  ): readonly AddressedEvent[] {
    return endpointIds.length === 0 ? [] : [{ row: this.#rowOf(event), endpointIds }]
  }

  /** Writes it for this endpoint, whatever its subscription. Returns the event's id. */
  async writeTo(
    endpointId: number,
    event: Pick<OutgoingEvent, 'data'> & { readonly type: string },
  ): Promise<string> {
    const row = this.#rowOf(event)
    await this.#write([{ row, endpointIds: [endpointId] }])
    return row.message_id
  }

  async #write(events: readonly AddressedEvent[]): Promise<void> {
    if (events.length === 0) return
    const { store, steadyNow, onWrite } = this.#deps
    const inserted = await this.#statements.insertEvents(events.map(({ row }) => row))
    const idOf = new Map(inserted.map(({ id, message_id: messageId }) => [messageId, id]))
    const now = steadyNow()
    await this.#statements.insertDeliveries(
      events.flatMap(({ endpointIds, row }) =>
        endpointIds.map((endpointId) => ({
          endpoint_id: endpointId,
          event_id: idOf.get(row.message_id) ?? null,
          next_attempt_at: now,
        })),
      ),
    )
    store.statements.afterCommit(onWrite)
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
}

/** Unique across restarts by a random start, without random bytes per event. */
function idsFrom(randomBytes: (size: number) => Buffer): () => string {
  const start = randomBytes(15).toString('base64url')
  let count = 0
  return () => `msg_${start}.${(count += 1).toString(36)}`
}

interface AddressedEvent {
  readonly row: NewEvent
  readonly endpointIds: readonly number[]
}

type NewEvent = Omit<Selectable<WebhookEventTable>, 'id'>

const prepare = ({ statements }: Store) => ({
  insertEvents: statements.prepareRows<Pick<Selectable<WebhookEventTable>, 'id' | 'message_id'>>({
    table: 'webhook_event',
    columns: ['message_id', 'type', 'body', 'created_at'],
    sql: `INSERT INTO webhook_event (message_id, type, body, created_at)
      SELECT message_id, type, body, created_at FROM given RETURNING id, message_id`,
  }),
  /** A deleted endpoint must not prevent a call from being stored. */
  insertDeliveries: statements.prepareRows({
    table: 'webhook_delivery',
    columns: ['endpoint_id', 'event_id', 'next_attempt_at'],
    sql: `INSERT INTO webhook_delivery (endpoint_id, event_id, next_attempt_at)
      SELECT endpoint_id, event_id, next_attempt_at FROM given
      WHERE endpoint_id IN (SELECT id FROM webhook_endpoint)`,
  }),
})
