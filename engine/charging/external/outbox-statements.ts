/** The outbox in SQL. The statements run in the caller's transaction. */
import { sql } from 'kysely'
import type { Param } from '../../../schema/sql/sync-query.ts'
import { prepare } from '../../../schema/sql/query.ts'
import type { Store } from '../../../schema/open.ts'

export interface OutboxRow {
  readonly call_uuid: string
  readonly body: string
  readonly attempts: number
}

export function outboxStatements(store: Store) {
  return {
    due: prepare(store, (db, param: Param<{ now: number; limit: number }>) =>
      db
        .selectFrom('cdr_outbox')
        .select(['call_uuid', 'body', 'attempts'])
        .where('next_attempt_at', '<=', param('now'))
        .orderBy('next_attempt_at')
        .limit(param('limit')),
    ),
    next: prepare(store, (db) =>
      db
        .selectFrom('cdr_outbox')
        .select((eb) => [eb.fn.min(freeAt).as('at'), eb.fn.countAll<number>().as('rows')]),
    ),
    bringForward: prepare(store, (db, param: Param<{ now: number; latest: number }>) =>
      db
        .updateTable('cdr_outbox')
        .set({ next_attempt_at: param('now') })
        .where('next_attempt_at', '>', param('latest')),
    ),
    postpone: prepare(store, (db, param: Param<{ callUuid: string; at: number; error: string }>) =>
      db
        .updateTable('cdr_outbox')
        .set((eb) => ({
          attempts: eb('attempts', '+', 1),
          next_attempt_at: param('at'),
          last_error: param('error'),
          ...unclaimed,
        }))
        .where('call_uuid', '=', param('callUuid')),
    ),
    remove: prepare(store, (db, param: Param<{ callUuid: string }>) =>
      db.deleteFrom('cdr_outbox').where('call_uuid', '=', param('callUuid')),
    ),
    setCost: prepare(
      store,
      (db, param: Param<{ callUuid: string; costMicros: number; currency: string | null }>) =>
        db
          .updateTable('cdr')
          .set((eb) => ({
            cost_micros: param('costMicros'),
            currency: eb.fn.coalesce(eb.val(param('currency')), 'currency'),
          }))
          .where('call_uuid', '=', param('callUuid')),
    ),
    /** Before and after `setCost`: the sums of a record follow its cost. */
    costGone: prepare(store, (db, param: Param<{ callUuid: string }>) =>
      db
        .insertInto('cdr_cost_change')
        .columns(['cdr_id', 'cost_micros', 'currency'])
        .expression(
          db
            .selectFrom('cdr')
            .select(['id', sql<number>`-cost_micros`.as('cost_micros'), 'currency'])
            .where('call_uuid', '=', param('callUuid'))
            .where('cost_micros', '<>', 0),
        ),
    ),
    costCome: prepare(store, (db, param: Param<{ callUuid: string }>) =>
      db
        .insertInto('cdr_cost_change')
        .columns(['cdr_id', 'cost_micros', 'currency'])
        .expression(
          db
            .selectFrom('cdr')
            .select(['id', 'cost_micros', 'currency'])
            .where('call_uuid', '=', param('callUuid'))
            .where('cost_micros', '<>', 0),
        ),
    ),
    claim: store.statements.isShared ? claimOn(store) : undefined,
    release: prepare(store, (db, param: Param<{ node: string }>) =>
      db.updateTable('cdr_outbox').set(unclaimed).where('claimed_by', '=', param('node')),
    ),
  }
}

const unclaimed = { claimed_by: null, claimed_until: null }

/** When it is due and no process sends it. */
const freeAt = sql<number>`CASE WHEN claimed_until > next_attempt_at THEN claimed_until ELSE next_attempt_at END`

/** Each row goes to one process: parameters are the time, how many, for which node, and until when. */
const claimOn = ({ statements }: Store) =>
  statements.prepare<OutboxRow>(
    `UPDATE cdr_outbox SET claimed_by = $3, claimed_until = $4 WHERE call_uuid IN (
       SELECT call_uuid FROM cdr_outbox
       WHERE next_attempt_at <= $1 AND (claimed_until IS NULL OR claimed_until <= $1)
       ORDER BY next_attempt_at LIMIT $2 FOR UPDATE SKIP LOCKED
     ) RETURNING call_uuid, body, attempts`,
  )
