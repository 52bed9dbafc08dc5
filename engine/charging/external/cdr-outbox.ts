/**
 * CDRs that an external OCS has not acknowledged yet. They are rows, written in the transaction of
 * the call record and deleted after the OCS answered 200. None is lost while the OCS is away; one
 * that arrives twice is charged once, because it has the uuid of its call.
 */
import { sql } from 'kysely'
import type { CallRecord } from '../../../schema/contracts/call-record.ts'
import type { Schedule } from '../../../schema/clock.ts'
import { timeToText } from '../../../schema/columns.ts'
import type { Log } from '../../../schema/contracts/log.ts'
import { OneAtATime } from '../../../schema/one-at-a-time.ts'
import type { Store } from '../../../schema/storage/store.ts'
import type { WriteQueue } from '../../../schema/storage/write-queue.ts'
import { type HttpAnswer, readCost } from './ocs-client.ts'
import { type Param, prepare, prepareTake, unclaimed } from '../../../schema/sql/query.ts'

export interface CdrOutboxDeps {
  readonly store: Store
  readonly writes: WriteQueue
  /** `NODE_NAME`. */
  readonly instance: string
  /** Milliseconds by the steady clock (schema/clock.ts). */
  readonly now: () => number
  readonly schedule: Schedule
  /** Returns a number from 0 up to 1: spreads the retries of many rows. */
  readonly random: () => number
  readonly post: (json: string) => Promise<HttpAnswer>
  readonly log: Log
}

const maxInFlight = 8
/** A row that the OCS refuses is tried again after 1, 2, 4 … seconds, at most ten minutes. */
const rowBackOff = { firstMs: 1_000, longestMs: 10 * 60_000 } as const
/** While the OCS does not answer, one row at a time probes it. */
const silenceBackOff = { firstMs: 200, longestMs: 30_000 } as const

/**
 * A row that a process has taken is left to it for so long, where several share the outbox: if it
 * ends for good.
 */
const CLAIM_MS = 60_000
/** While the database does not answer. */
const UNREAD_RETRY_MS = 1_000

export class CdrOutbox {
  readonly #deps: CdrOutboxDeps
  readonly #statements: ReturnType<typeof outboxStatements>
  readonly #inFlight = new Set<string>()
  readonly #sending = new OneAtATime(() => this.#sendDue())
  #waiting = 0
  #silences = 0
  #cancelWakeUp: (() => void) | undefined
  #state: 'stopped' | 'starting' | 'running' = 'stopped'

  constructor(deps: CdrOutboxDeps) {
    this.#deps = deps
    this.#statements = outboxStatements(deps.store)
  }

  start(): void {
    this.#state = 'starting'
    this.#bringForward()
  }

  get #isRunning(): boolean {
    return this.#state === 'running'
  }

  /**
   * Sends the reports again that the last run of this instance had taken. Its clock may have been
   * ahead: reports do not wait for its times. Nothing is taken before: its claim would be released
   * with theirs.
   */
  #bringForward(): void {
    const now = this.#deps.now()
    const latest = now + rowBackOff.longestMs
    this.#deps.writes.add({
      run: async () => {
        await this.release()
        await this.#statements.bringForward.run({ now, latest })
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
  }

  /** Lets others take what this instance has taken. */
  async release(): Promise<void> {
    await this.#statements.release.run({ instance: this.#deps.instance })
  }

  /**
   * Sends the reports that are due, up to the limit in flight. To be called after a commit that has
   * added to the outbox.
   */
  wake(): void {
    if (!this.#isRunning || (this.#silences > 0 && this.#cancelWakeUp !== undefined)) return
    this.#send()
  }

  #send(): void {
    this.#cancelWakeUp?.()
    this.#cancelWakeUp = undefined
    this.#sending.request().catch((error: unknown) => {
      if (!this.#isRunning) return
      this.#deps.log('error', 'charging: pending CDRs cannot be read', { error })
      this.#wakeAfter(UNREAD_RETRY_MS)
    })
  }

  async #sendDue(): Promise<void> {
    if (!this.#isRunning) return
    const room = (this.#silences > 0 ? 1 : maxInFlight) - this.#inFlight.size
    if (room <= 0) return
    const now = this.#deps.now()
    const claim = { instance: this.#deps.instance, now, until: now + CLAIM_MS }
    const rows = await this.#statements.take(claim, room, this.#inFlight)
    for (const row of rows) {
      this.#inFlight.add(row.call_uuid)
      void this.#deliver(row)
    }
    if (rows.length === 0 && this.#inFlight.size === 0) await this.#sleep()
  }

  /** Sleeps until the next row is due; a minute at most, in case the clock was set back. */
  async #sleep(): Promise<void> {
    const { at = null, rows = 0 } = (await this.#statements.next.get({})) ?? {}
    this.#waiting = rows
    if (at === null || !this.#isRunning) return
    this.#wakeAfter(Math.min(Math.max(at - this.#deps.now(), 1), 60_000))
  }

  #wakeAfter(delayMs: number): void {
    this.#cancelWakeUp?.()
    this.#cancelWakeUp = this.#deps.schedule(() => {
      if (this.#isRunning) this.#send()
    }, delayMs)
  }

  async #deliver(row: OutboxRow): Promise<void> {
    const answer = await this.#deps.post(row.body)
    if (answer.kind === 'silence') return this.#unanswered(row, answer.reason)
    if (this.#silences > 0) this.#deps.log('info', 'charging: the OCS answers again', {})
    this.#silences = 0
    if (answer.status === 200) this.#acknowledged(row, answer.body)
    else this.#refused(row, answer.status)
  }

  #acknowledged({ call_uuid: callUuid }: OutboxRow, body: unknown): void {
    const cost = readCost(body)
    this.#write(callUuid, async () => {
      if (cost !== undefined) {
        await this.#statements.costGone.run({ callUuid })
        await this.#statements.setCost.run({ callUuid, ...cost })
        await this.#statements.costCome.run({ callUuid })
      }
      await this.#statements.remove.run({ callUuid })
    })
  }

  #refused(row: OutboxRow, status: number): void {
    const delayMs = backOff(rowBackOff, row.attempts, this.#deps.random())
    this.#deps.log('warn', 'charging: the OCS refused a CDR', {
      call_uuid: row.call_uuid,
      status,
      attempts: row.attempts + 1,
    })
    this.#postpone(row, `status ${status}`, delayMs)
  }

  #unanswered(row: OutboxRow, reason: string): void {
    // Rows in flight together count as one silence.
    if (this.#silences === 0 || this.#cancelWakeUp === undefined) {
      const delayMs = backOff(silenceBackOff, this.#silences, this.#deps.random())
      if (this.#silences === 0)
        this.#deps.log('warn', 'charging: the OCS does not answer; CDRs wait', { reason })
      this.#silences += 1
      this.#wakeAfter(delayMs)
    }
    this.#postpone(row, reason, 0)
  }

  #postpone({ call_uuid: callUuid }: OutboxRow, error: string, delayMs: number): void {
    const at = this.#deps.now() + delayMs
    this.#write(callUuid, () => this.#statements.postpone.run({ callUuid, at, error }))
  }

  /**
   * The row is in flight until its new state is committed, so that no delivery reads the old one.
   */
  #write(callUuid: string, run: () => Promise<unknown>): void {
    this.#deps.writes.add({
      run,
      done: () => {
        this.#inFlight.delete(callUuid)
        this.wake()
      },
    })
  }

  stats(): { readonly waiting: number; readonly inFlight: number } {
    return { waiting: this.#waiting + this.#inFlight.size, inFlight: this.#inFlight.size }
  }
}

/** Doubles with each failure, within the bounds; the last quarter is random. */
function backOff(
  { firstMs, longestMs }: { readonly firstMs: number; readonly longestMs: number },
  failures: number,
  random: number,
): number {
  const full = Math.min(firstMs * 2 ** Math.min(failures, 30), longestMs)
  return Math.round(full * (0.75 + 0.25 * random))
}

/** The body of `POST /api/ocs/cdr` (SPECIFICATION.md §13.3), with the CDR's own field names. */
export function reportBody(record: CallRecord): string {
  return JSON.stringify({
    call_uuid: record.callUuid,
    caller: record.callerNumber,
    callee: record.calledNumber,
    billsec: record.billsec,
    customer_id: record.customerId,
    call_id: record.callId,
    direction: record.direction,
    start_stamp: timeToText(record.startedAt),
    answer_stamp: record.answeredAt === null ? null : timeToText(record.answeredAt),
    end_stamp: timeToText(record.endedAt),
    disposition: record.disposition,
    sip_code: record.sipCode,
    hangup_cause: record.hangupCause,
    hangup_by: record.hangupBy,
    recovered: record.isRecovered,
    unauthorized_by_ocs: record.isUnauthorizedByOcs,
  })
}

export interface OutboxRow {
  readonly call_uuid: string
  readonly body: string
  readonly attempts: number
}

/** The outbox in SQL. The statements run in the caller's transaction. */
export function outboxStatements(store: Store) {
  return {
    take: prepareTake(store, 'cdr_outbox', 'call_uuid', (db, param) =>
      db
        .selectFrom('cdr_outbox')
        .select(['call_uuid', 'body', 'attempts', 'next_attempt_at'])
        .where('next_attempt_at', '<=', param('now'))
        .where((row) =>
          row.or([row('claimed_until', 'is', null), row('claimed_until', '<=', param('now'))]),
        )
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
    /** Runs before and after `setCost`: the sums of a record follow its cost. */
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
    release: prepare(store, (db, param: Param<{ instance: string }>) =>
      db.updateTable('cdr_outbox').set(unclaimed).where('claimed_by', '=', param('instance')),
    ),
  }
}

/** The time at which it is due and no process sends it. */
const freeAt = sql<number>`CASE WHEN claimed_until > next_attempt_at
  THEN claimed_until ELSE next_attempt_at END`
