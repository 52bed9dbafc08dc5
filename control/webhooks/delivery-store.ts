/**
 * Deliveries as rows: due ones, each of which one process takes (`prepareTake`), results, and
 * expiry.
 */
import { type ExpressionBuilder, type Selectable, sql } from 'kysely'
import { z } from 'zod'
import type { Database } from '../../schema/tables/database.ts'
import type { WebhookDeliveryTable, WebhookEventTable } from '../../schema/tables/changes.ts'
import type { Store } from '../../schema/storage/store.ts'
import {
  all,
  type RowClaim,
  execute,
  first,
  isTakenBy,
  type Param,
  prepare,
  prepareTake,
  unclaimed,
} from '../../schema/sql/query.ts'
import { countOf } from '../http/rows.ts'
import type { Rows } from '../resources/resource.ts'
import { MAX_COUNTED, MAX_LISTED } from '../http/envelope.ts'
import { type Column, json, time } from '../http/field-columns.ts'
import * as field from '../http/field-table.ts'
import { count, exampleTime, moment } from '../http/view-fields.ts'

export type DueDelivery = Pick<
  JoinedRow,
  'id' | 'attempts' | 'message_id' | 'body' | 'next_attempt_at'
>

type DeliveryState = Selectable<WebhookDeliveryTable>['state']

export interface DeliveryAttempt {
  readonly id: number
  readonly state: DeliveryState
  readonly nextAttemptAt: number
  readonly now: number
  readonly status: number | null
  readonly error: string | null
  /** The start of the response body; null without a response. */
  readonly answer: string | null
}

export interface WebhookBacklog {
  /** Number of waiting deliveries, at most `maxCounted`. */
  readonly pending: number
  /** Age of the oldest event; null when nothing waits. */
  readonly oldestMs: number | null
}

/** Maximum counted: counting more would delay calls. */
const maxCounted = 10_000

export type DeliveryView = z.output<typeof deliveryFields.view>

export class DeliveryStore {
  readonly #store: Store
  readonly #statements: ReturnType<typeof prepareAll>

  constructor(store: Store) {
    this.#store = store
    this.#statements = prepareAll(store)
  }

  /** Takes at most `limit`, longest overdue first, without those that this process is sending. */
  take(
    endpointId: number,
    claim: RowClaim,
    limit: number,
    busy: ReadonlySet<number>,
  ): Promise<readonly DueDelivery[]> {
    return this.#statements.take({ endpointId, ...claim }, limit, busy)
  }

  /**
   * When the next delivery of each endpoint is due that no process has taken, in milliseconds UTC.
   */
  async nextTimes(now: number): Promise<ReadonlyMap<number, number>> {
    const found = await this.#statements.next.all({ now })
    return new Map(found.flatMap(({ id, at }) => (at === null ? [] : [[id, at]])))
  }

  /**
   * Runs in the caller's transaction. An accepted delivery stays so; a failure of one that another
   * process has taken meanwhile changes nothing.
   */
  async record(attempt: DeliveryAttempt, instance: string): Promise<void> {
    const { record, recordFailed } = this.#statements
    await (attempt.state === 'delivered' ? record : recordFailed).run({ ...attempt, instance })
  }

  /** Lets others take what this instance has taken. */
  async release(instance: string): Promise<void> {
    const query = this.#store.db.updateTable('webhook_delivery').set(unclaimed)
    await execute(this.#store, query.where('claimed_by', '=', instance))
  }

  async hasMorePendingThan(endpointId: number, count: number): Promise<boolean> {
    return (await this.#statements.pendingAt.get({ endpointId, count })) !== undefined
  }

  /** Newest first. */
  async list(
    endpointId: number,
    state: DeliveryState | undefined,
    { limit, offset }: { readonly limit: number; readonly offset: number },
  ): Promise<Rows<DeliveryView>> {
    const ofEndpoint = this.#store.db
      .selectFrom('webhook_delivery')
      .select('id')
      .where('endpoint_id', '=', endpointId)
      .$if(state !== undefined, (query) => query.where('state', '=', state ?? 'pending'))
    const total = await countOf(this.#store, ofEndpoint.limit(MAX_COUNTED))
    const rows = this.#joined()
      .where('endpoint_id', '=', endpointId)
      .$if(state !== undefined, (query) => query.where('state', '=', state ?? 'pending'))
      .orderBy('webhook_delivery.id', 'desc')
      .limit(limit)
      .offset(offset)
    const page = offset >= MAX_LISTED ? [] : await all(this.#store, rows)
    return { rows: page.map(deliveryView), total }
  }

  async find(endpointId: number, id: number): Promise<DeliveryView | undefined> {
    const query = this.#joined()
      .where('endpoint_id', '=', endpointId)
      .where('webhook_delivery.id', '=', id)
    const row = await first(this.#store, query)
    return row && deliveryView(row)
  }

  /** Makes it due now and keeps its attempts. */
  async retry(id: number, now: number): Promise<void> {
    await execute(
      this.#store,
      this.#store.db
        .updateTable('webhook_delivery')
        .set({ state: 'pending', attempts: 0, next_attempt_at: now })
        .where('id', '=', id),
    )
  }

  /** Makes deliveries due after `latest` due now. */
  async bringForward(now: number, latest: number): Promise<void> {
    await execute(
      this.#store,
      this.#store.db
        .updateTable('webhook_delivery')
        .set({ next_attempt_at: now })
        .where('state', '=', 'pending')
        .where('next_attempt_at', '>', latest),
    )
  }

  /**
   * Examines `limit` events after `after`. Deletes those created before `before`, and those up to
   * `upTo` without a waiting delivery. Returns where to continue; 0 at the end.
   */
  async prune(
    after: number,
    limit: number,
    { before, upTo }: { readonly before: number; readonly upTo: number },
  ): Promise<number> {
    const last = await this.#statements.eventAt.get({ after, offset: limit - 1 })
    const query = this.#store.db
      .deleteFrom('webhook_event')
      .where('id', '>', after)
      .$if(last !== undefined, (events) => events.where('id', '<=', last?.id ?? 0))
      .where(({ and, eb, exists, not, or, selectFrom }) => {
        const waiting = selectFrom('webhook_delivery')
          .select('webhook_delivery.id')
          .whereRef('event_id', '=', 'webhook_event.id')
          .where('state', '=', pending)
        return or([
          eb('created_at', '<', before),
          and([eb('id', '<=', upTo), not(exists(waiting))]),
        ])
      })
    await execute(this.#store, query)
    return last?.id ?? 0
  }

  async backlog(now: number): Promise<WebhookBacklog> {
    const { pending } = (await this.#statements.backlog.get({})) ?? { pending: 0 }
    const oldest = pending === 0 ? undefined : await this.#statements.oldest.get({})
    return { pending, oldestMs: oldest === undefined ? null : Math.max(0, now - oldest.created_at) }
  }

  async newestEvent(): Promise<number> {
    return (await this.#statements.newest.get({}))?.id ?? 0
  }

  #joined() {
    return this.#store.db
      .selectFrom('webhook_delivery')
      .innerJoin('webhook_event', 'webhook_event.id', 'webhook_delivery.event_id')
      .selectAll('webhook_delivery')
      .select(['message_id', 'type', 'body', 'created_at'])
  }
}

type JoinedRow = Selectable<WebhookDeliveryTable> &
  Pick<Selectable<WebhookEventTable>, 'message_id' | 'type' | 'body' | 'created_at'>

/** When it is sent next; null: never again. */
const timeIfPending = (column: string): Column => ({
  read: (row) => (row['state'] === 'pending' ? time(column).read(row) : null),
})

/** The answers and the example of deliveries follow from this table. */
export const deliveryFields = field.table(
  {
    id: field.id,
    webhook_id: field.shown(z.string(), { column: 'message_id', example: 'msg_1' }),
    type: field.shown(z.string(), { example: 'call.ended' }),
    state: field.shown(z.enum(['pending', 'delivered', 'failed']), { example: 'delivered' }),
    attempts: field.shown(count, { example: 1 }),
    next_attempt_at: field.shown(moment.nullable(), { stored: timeIfPending, example: null }),
    last_attempt_at: field.timeOrNull({ example: exampleTime }),
    last_status: field.shown(z.int().nullable(), { example: 200 }),
    last_error: field.shown(z.string().nullable(), { example: null }),
    last_answer: field.shown(z.string().nullable(), {
      about: 'The start of the last response body.',
      example: 'ok',
    }),
    created_at: field.createdAt,
    payload: field.shown(z.unknown(), {
      about: 'The request body.',
      column: 'body',
      stored: json,
      example: { type: 'call.ended' },
    }),
  },
  { schemaId: 'WebhookDelivery' },
)

const deliveryView = (row: JoinedRow): DeliveryView => field.shownOf(deliveryFields, row)

/** A literal: SQLite chooses a partial index by constants, not by parameters. */
const pending = sql.lit<'pending'>('pending')

/** No process is sending it, or the one that was has not stored a result in time. */
const isFree = (row: ExpressionBuilder<Database, 'webhook_delivery'>, now: number) =>
  row.or([row('claimed_until', 'is', null), row('claimed_until', '<=', now)])

const prepareRecord = (store: Store, by: 'its node' | 'any node') =>
  prepare(store, (db, param: Param<DeliveryAttempt & { instance: string }>) =>
    db
      .updateTable('webhook_delivery')
      .set((eb) => ({
        state: param('state'),
        attempts: eb('attempts', '+', 1),
        next_attempt_at: param('nextAttemptAt'),
        last_attempt_at: param('now'),
        last_status: param('status'),
        last_error: param('error'),
        last_answer: param('answer'),
        ...unclaimed,
      }))
      .where('id', '=', param('id'))
      .$if(by === 'its node', (query) => query.where(isTakenBy(store, param('instance')))),
  )

const prepareAll = (store: Store) => ({ ...prepareSending(store), ...prepareBacklog(store) })

/** The statements that find what is due, and note what became of it. */
function prepareSending(store: Store) {
  return {
    take: prepareTake<{ endpointId: number }, 'id', DueDelivery>(
      store,
      'webhook_delivery',
      'id',
      (db, param) =>
        db
          .selectFrom('webhook_delivery')
          .innerJoin('webhook_event', 'webhook_event.id', 'webhook_delivery.event_id')
          .select(['webhook_delivery.id', 'attempts', 'message_id', 'body', 'next_attempt_at'])
          .where('endpoint_id', '=', param('endpointId'))
          .where('state', '=', pending)
          .where('next_attempt_at', '<=', param('now'))
          .where((row) => isFree(row, param('now')))
          .orderBy('next_attempt_at')
          .limit(param('limit')),
    ),
    next: prepare(store, (db, param: Param<{ now: number }>) =>
      db
        .selectFrom('webhook_endpoint')
        .select((endpoint) => [
          'webhook_endpoint.id',
          endpoint
            .selectFrom('webhook_delivery')
            .select('next_attempt_at')
            .whereRef('endpoint_id', '=', 'webhook_endpoint.id')
            .where('state', '=', pending)
            .where((row) => isFree(row, param('now')))
            .orderBy('next_attempt_at')
            .limit(sql.lit(1))
            .as('at'),
        ])
        .where('is_active', '=', 1)
        .where('removed_at', 'is', null),
    ),
    record: prepareRecord(store, 'any node'),
    recordFailed: prepareRecord(store, 'its node'),
  }
}

/** The statements that tell how much waits, and since when. */
function prepareBacklog(store: Store) {
  return {
    pendingAt: prepare(store, (db, param: Param<{ endpointId: number; count: number }>) =>
      db
        .selectFrom('webhook_delivery')
        .select('id')
        .where('endpoint_id', '=', param('endpointId'))
        .where('state', '=', pending)
        .limit(1)
        .offset(param('count')),
    ),
    eventAt: prepare(store, (db, param: Param<{ after: number; offset: number }>) =>
      db
        .selectFrom('webhook_event')
        .select('id')
        .where('id', '>', param('after'))
        .orderBy('id')
        .limit(1)
        .offset(param('offset')),
    ),
    backlog: prepare(store, (db) =>
      db
        .selectFrom(
          db
            .selectFrom('webhook_delivery')
            .select('event_id')
            .where('state', '=', pending)
            .limit(sql.lit(maxCounted))
            .as('some'),
        )
        .select((eb) => eb.fn.countAll<number>().as('pending')),
    ),
    oldest: prepare(store, (db) =>
      db
        .selectFrom('webhook_event')
        .select('created_at')
        .where('id', '=', (eb) =>
          eb
            .selectFrom('webhook_delivery')
            .where('state', '=', pending)
            .select((each) => each.fn.min('event_id').as('id')),
        ),
    ),
    newest: prepare(store, (db) =>
      db.selectFrom('webhook_event').select((eb) => eb.fn.max('id').as('id')),
    ),
  }
}
