/** Messages as rows: due ones, each of which one process takes, and what became of them. */
import { sql } from 'kysely'
import {
  execute,
  isTakenBy,
  type Param,
  prepare,
  prepareTake,
  type RowClaim,
  unclaimed,
} from '../../schema/sql/query.ts'
import type { Store } from '../../schema/storage/store.ts'
import { countOf } from '../http/rows.ts'

export interface DueMessage {
  readonly id: number
  readonly key: string
  readonly body: string
  readonly attempts: number
  readonly next_attempt_at: number
}

export interface MessageAttempt {
  readonly id: number
  readonly state: 'pending' | 'sent' | 'failed'
  readonly nextAttemptAt: number
  readonly now: number
  readonly error: string | null
}

export interface AlertBacklog {
  /** Messages and notices that wait, at most `MAX_COUNTED_ALERTS` each. */
  readonly waiting: number
  /** Messages that were given up. */
  readonly failed: number
}

const MAX_COUNTED_ALERTS = 10_000

export class MessageStore {
  readonly #store: Store
  readonly #statements: ReturnType<typeof prepareAll>

  constructor(store: Store) {
    this.#store = store
    this.#statements = prepareAll(store)
  }

  take(
    channelId: number,
    claim: RowClaim,
    limit: number,
    busy: ReadonlySet<number>,
  ): Promise<readonly DueMessage[]> {
    return this.#statements.take({ channelId, ...claim }, limit, busy)
  }

  /** Channels with messages that are due, and that no process has taken. */
  async dueChannels(now: number): Promise<readonly number[]> {
    return (await this.#statements.due.all({ now })).map(({ channel_id: id }) => id)
  }

  /** One that was sent stays so; a failure of one that another process has taken counts nothing. */
  async record(attempt: MessageAttempt, instance: string): Promise<void> {
    const { record, recordFailed } = this.#statements
    await (attempt.state === 'sent' ? record : recordFailed).run({ ...attempt, instance })
  }

  /** Lets others take what this instance has taken. */
  async release(instance: string): Promise<void> {
    const query = this.#store.db.updateTable('alert_message').set(unclaimed)
    await execute(this.#store, query.where('claimed_by', '=', instance))
  }

  /** A clock that was ahead must not delay anything: what is due after `latest` is due now. */
  async bringForward(now: number, latest: number): Promise<void> {
    const { db } = this.#store
    await execute(
      this.#store,
      db
        .updateTable('alert_message')
        .set({ next_attempt_at: now })
        .where('state', '=', 'pending')
        .where('next_attempt_at', '>', latest),
    )
    await execute(
      this.#store,
      db
        .updateTable('alert_notice')
        .set({ due_at: now })
        .where('message_id', 'is', null)
        .where('due_at', '>', latest),
    )
    await execute(
      this.#store,
      db
        .updateTable('alert')
        .set({ due_at: now })
        .where('state', '=', 'waiting')
        .where('due_at', '>', latest),
    )
  }

  /** The channel works: what waits for it after failures is due now. */
  async bringChannelForward(channelId: number, now: number): Promise<void> {
    const query = this.#store.db
      .updateTable('alert_message')
      .set({ next_attempt_at: now })
      .where('channel_id', '=', channelId)
      .where('state', '=', 'pending')
      .where('next_attempt_at', '>', now)
    await execute(this.#store, query)
  }

  /** Deletes what is over since `before`, at most `limit` of each table. */
  async prune(before: number, limit: number): Promise<void> {
    const { db } = this.#store
    const alerts = db
      .selectFrom('alert')
      .select('id')
      .where('state', '=', 'closed')
      .where('closed_at', '<', before)
      .orderBy('id')
      .limit(limit)
    await execute(this.#store, db.deleteFrom('alert').where('id', 'in', alerts))
    const messages = db
      .selectFrom('alert_message')
      .select('id')
      .where('created_at', '<', before)
      .orderBy('id')
      .limit(limit)
    await execute(this.#store, db.deleteFrom('alert_message').where('id', 'in', messages))
  }

  /** Gives up what has waited since `before` for a channel that is switched off. */
  async giveUp(before: number): Promise<void> {
    const query = this.#store.db
      .updateTable('alert_message')
      .set({ state: 'failed', last_error: 'the channel was switched off', ...unclaimed })
      .where('state', '=', 'pending')
      .where('created_at', '<', before)
    await execute(this.#store, query)
  }

  async backlog(): Promise<AlertBacklog> {
    const { db } = this.#store
    const messages = db.selectFrom('alert_message').select('id').limit(MAX_COUNTED_ALERTS)
    const pending = messages.where('state', '=', 'pending')
    const failed = messages.where('state', '=', 'failed')
    const notices = db
      .selectFrom('alert_notice')
      .select('id')
      .where('message_id', 'is', null)
      .limit(MAX_COUNTED_ALERTS)
    return {
      waiting: (await countOf(this.#store, pending)) + (await countOf(this.#store, notices)),
      failed: await countOf(this.#store, failed),
    }
  }
}

/** A literal: SQLite chooses a partial index by constants, not by parameters. */
const isPending = sql.lit<'pending'>('pending')

const prepareRecord = (store: Store, by: 'its node' | 'any node') =>
  prepare(store, (db, param: Param<MessageAttempt & { instance: string }>) =>
    db
      .updateTable('alert_message')
      .set((eb) => ({
        state: param('state'),
        attempts: eb('attempts', '+', 1),
        next_attempt_at: param('nextAttemptAt'),
        last_attempt_at: param('now'),
        last_error: param('error'),
        ...unclaimed,
      }))
      .where('id', '=', param('id'))
      .where('state', '<>', 'sent')
      .$if(by === 'its node', (query) => query.where(isTakenBy(store, param('instance')))),
  )

function prepareAll(store: Store) {
  return {
    take: prepareTake<{ channelId: number }, 'id', DueMessage>(
      store,
      'alert_message',
      'id',
      (db, param) =>
        db
          .selectFrom('alert_message')
          .select(['id', 'key', 'body', 'attempts', 'next_attempt_at'])
          .where('channel_id', '=', param('channelId'))
          .where('state', '=', isPending)
          .where('next_attempt_at', '<=', param('now'))
          .where((row) =>
            row.or([row('claimed_until', 'is', null), row('claimed_until', '<=', param('now'))]),
          )
          .where((row) =>
            row.not(
              row.exists(
                row
                  .selectFrom('alert_message as earlier')
                  .select('earlier.id')
                  .whereRef('earlier.id', '=', 'alert_message.after_id')
                  .where('earlier.state', '=', isPending),
              ),
            ),
          )
          .orderBy('next_attempt_at')
          .limit(param('limit')),
    ),
    due: prepare(store, (db, param: Param<{ now: number }>) =>
      db
        .selectFrom('alert_message')
        .select('channel_id')
        .distinct()
        .where('state', '=', isPending)
        .where('next_attempt_at', '<=', param('now'))
        .where((row) =>
          row.or([row('claimed_until', 'is', null), row('claimed_until', '<=', param('now'))]),
        )
        .limit(sql.lit(1_000)),
    ),
    record: prepareRecord(store, 'any node'),
    recordFailed: prepareRecord(store, 'its node'),
  }
}
