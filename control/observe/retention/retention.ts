/**
 * Deletes call records, audit entries, changes and proposals past their retention period, in small
 * batches: SIP shares the thread, and a batch takes two milliseconds. Records of calls from unknown
 * sources, which cost nothing, are deleted earlier. Ledger entries stay for ever, and so do reports
 * that an external OCS has not received.
 */
import { sql } from 'kysely'
import { DAY_MS } from '../../../schema/clock.ts'
import type { Log } from '../../../schema/contracts/log.ts'
import type { Store } from '../../../schema/storage/store.ts'
import { execute, onOneInstance, prepare, type Prepared } from '../../../schema/sql/query.ts'
import { isUnstored } from '../../../schema/storage/storage.ts'
import { type CountedEntry, countedColumns, StateQuota } from '../../changes/state-quota.ts'
import type { RefusalReason, RefusedCallsTable } from '../../../schema/tables/calls.ts'

export interface RetentionPeriods {
  /** Days after the start of a call; 0 keeps records forever. */
  readonly callRecordDays: number
  /** Days; 0 keeps entries forever. */
  readonly auditDays: number
}

export interface RetentionDeps {
  readonly store: Store
  /** Milliseconds UTC. */
  readonly now: () => number
  readonly log: Log
}

/** Interval between calls of `step` while there is something to delete. */
export const RETENTION_STEP_MS = 100
/** Rows of each kind per step: a thousand per second, more than calls can produce. */
const BATCH = 100
/** Changes per step: they are read with their states, of 64 kB at most. */
const CHANGES_BATCH = 25
/** Pause when nothing is left to delete. */
const PAUSE_MS = 600_000
/** How long nobody asks for the next step at most: a clock may be set meanwhile. */
const LONGEST_PAUSE_MS = 10_000
/** Delay after a failed write; doubles with each consecutive failure, up to the pause. */
const RETRY_MS = 1_000
/** How long records of calls from unknown sources are useful. */
const UNKNOWN_SOURCE_DAYS = 30

export class Retention {
  readonly #deps: RetentionDeps
  readonly #periods: RetentionPeriods
  readonly #statements: ReturnType<typeof prepareAll>
  readonly #removed = { callRecords: 0, auditEntries: 0 }
  #restsUntil = 0
  #isBusy = false
  #retryMs = RETRY_MS

  constructor(deps: RetentionDeps, periods: RetentionPeriods) {
    this.#deps = deps
    this.#periods = periods
    this.#statements = prepareAll(deps.store)
  }

  /**
   * Deletes one batch of each kind, if due and the last one is deleted; called again after
   * `pauseMs`.
   */
  async step(): Promise<void> {
    const now = this.#deps.now()
    if (now < this.#restsUntil || this.#isBusy) return
    this.#isBusy = true
    try {
      await this.#forget(now)
      this.#retryMs = RETRY_MS
    } catch (error) {
      const restMs = isUnstored(error) ? this.#retryMs : PAUSE_MS
      this.#restsUntil = now + restMs
      this.#retryMs = Math.min(this.#retryMs * 2, PAUSE_MS)
      // A short lock by another process is not worth a warning.
      if (restMs === RETRY_MS) return
      this.#deps.log('warn', 'old records could not be deleted', { error: String(error) })
    } finally {
      this.#isBusy = false
    }
  }

  /** When the next step is due. */
  pauseMs(): number {
    const restMs = this.#restsUntil - this.#deps.now()
    return Math.min(Math.max(restMs, RETENTION_STEP_MS), LONGEST_PAUSE_MS)
  }

  async #forget(now: number): Promise<void> {
    const { callRecordDays, auditDays } = this.#periods
    const { oldCalls, oldSamples } = this.#statements
    const samples = await this.#forgetCalls(oldSamples, now - UNKNOWN_SOURCE_DAYS * DAY_MS)
    const before = now - callRecordDays * DAY_MS
    const calls = callRecordDays === 0 ? 0 : await this.#forgetCalls(oldCalls, before)
    const minutes = callRecordDays === 0 ? 0 : await this.#forgetRefused(before)
    const auditedSince = now - auditDays * DAY_MS
    const entries = auditDays === 0 ? 0 : await this.#forgetEntries(auditedSince)
    const changes = auditDays === 0 ? 0 : await this.#forgetChanges(auditedSince)
    const proposals = auditDays === 0 ? 0 : await this.#forgetProposals(auditedSince)
    this.#removed.callRecords += calls + samples
    this.#removed.auditEntries += entries
    if ([samples, calls, minutes, entries, changes, proposals].includes(BATCH)) return
    this.#restsUntil = now + PAUSE_MS
    this.#report()
  }

  /** Deletes calls and the nodes' reports about them. */
  #forgetCalls(calls: OldCalls, before: number): Promise<number> {
    return this.#alone(async () => {
      const old = await calls.all({ before, batch: BATCH })
      const { store } = this.#deps
      const [ids, uuids] = [old.map(({ id }) => id), old.map((call) => call.call_uuid)]
      if (old.length === 0) return 0
      await execute(store, store.db.deleteFrom('ocs_report').where('call_uuid', 'in', uuids))
      await execute(store, store.db.deleteFrom('cdr_cost_change').where('cdr_id', 'in', ids))
      await execute(store, store.db.deleteFrom('cdr').where('id', 'in', ids))
      return old.length
    })
  }

  /** Counters of calls without a record. */
  #forgetRefused(before: number): Promise<number> {
    return this.#alone(async () => {
      const old = await this.#statements.oldRefused.all({ before, batch: BATCH })
      for (const count of old) await this.#statements.forgetRefused.run(count)
      return old.length
    })
  }

  /** The trigger of the table rejects deleting anything younger than `setting`. */
  #forgetEntries(before: number): Promise<number> {
    return this.#alone(async () => {
      const old = await this.#statements.oldEntries.all({ before, batch: BATCH })
      if (old.length === 0) return 0
      await this.#statements.keepSince.run({ value: String(before) })
      const { store } = this.#deps
      const ids = old.map(({ id }) => id)
      await execute(store, store.db.deleteFrom('audit_entry').where('id', 'in', ids))
      return old.length
    })
  }

  /** Removes old changes, except those that the platform will undo. */
  #forgetChanges(before: number): Promise<number> {
    return this.#alone(async () => {
      const old = await this.#statements.oldChanges.all({ before, batch: CHANGES_BATCH })
      if (old.length === 0) return 0
      const { store } = this.#deps
      const ids = old.map(({ id }) => id)
      await execute(store, store.db.deleteFrom('change_entry').where('id', 'in', ids))
      await new StateQuota(store).deleted(old)
      return old.length === CHANGES_BATCH ? BATCH : old.length
    })
  }

  /** Removes old proposals with a known outcome. */
  #forgetProposals(before: number): Promise<number> {
    return this.#alone(async () => {
      const old = await this.#statements.oldProposals.all({ before, batch: BATCH })
      if (old.length === 0) return 0
      const { store } = this.#deps
      const ids = old.map(({ id }) => id)
      await execute(store, store.db.deleteFrom('change_proposal').where('id', 'in', ids))
      return old.length
    })
  }

  /** Skips the work while another instance does it. */
  async #alone(work: () => Promise<number>): Promise<number> {
    const done = await onOneInstance(this.#deps.store, 'retention', work)
    return done.kind === 'done' ? done.result : 0
  }

  #report(): void {
    const { callRecords, auditEntries } = this.#removed
    if (callRecords === 0 && auditEntries === 0) return
    this.#deps.log('info', 'records past their retention were deleted', { ...this.#removed })
    this.#removed.callRecords = 0
    this.#removed.auditEntries = 0
  }
}

interface Batch {
  readonly before: number
  readonly batch: number
}

type OldCalls = Prepared<Batch, { id: number; call_uuid: string }>

const prepareAll = (store: Store) => ({ ...prepareCalls(store), ...prepareEntries(store) })

/** The statements that find call records, and the counts of refused calls. */
function prepareCalls(store: Store) {
  const oldCalls: OldCalls = prepare(store, (db, param) =>
    db
      .selectFrom('cdr')
      .select(['id', 'call_uuid'])
      .where('start_stamp', '<', param('before'))
      .where(({ exists, not, selectFrom }) =>
        not(
          exists(
            selectFrom('cdr_outbox')
              .select('cdr_outbox.call_uuid')
              .whereRef('cdr_outbox.call_uuid', '=', 'cdr.call_uuid'),
          ),
        ),
      )
      .orderBy('start_stamp')
      .limit(param('batch')),
  )
  // A literal: with a parameter, SQLite would not use the index of these records.
  const oldSamples: OldCalls = prepare(store, (db, param) =>
    db
      .selectFrom('cdr')
      .select(['id', 'call_uuid'])
      .where('denial_code', '=', sql.lit('unknown_source'))
      .where('start_stamp', '<', param('before'))
      .orderBy('start_stamp')
      .limit(param('batch')),
  )
  const oldRefused: Prepared<Batch, Pick<RefusedCallsTable, 'minute' | 'reason'>> = prepare(
    store,
    (db, param) =>
      db
        .selectFrom('refused_calls')
        .select(['minute', 'reason'])
        .where('minute', '<', param('before'))
        .orderBy('minute')
        .limit(param('batch')),
  )
  const forgetRefused: Prepared<{ minute: number; reason: RefusalReason }, unknown> = prepare(
    store,
    (db, param) =>
      db
        .deleteFrom('refused_calls')
        .where('minute', '=', param('minute'))
        .where('reason', '=', param('reason')),
  )
  return { oldSamples, oldRefused, forgetRefused, oldCalls }
}

/** The statements that find entries of the audit log, changes and proposals. */
function prepareEntries(store: Store) {
  const oldEntries: Prepared<Batch, { id: number }> = prepare(store, (db, param) =>
    db
      .selectFrom('audit_entry')
      .select('id')
      .where('at', '<', param('before'))
      .orderBy('at')
      .limit(param('batch')),
  )
  const oldChanges: Prepared<Batch, CountedEntry> = prepare(store, (db, param) =>
    db
      .selectFrom('change_entry')
      .select(countedColumns)
      .where('at', '<', param('before'))
      .where('state', '<>', 'pending')
      .where((row) => row.or([row('state', '<>', 'made'), row('expires_at', 'is', null)]))
      .orderBy('at')
      .limit(param('batch')),
  )
  const oldProposals: Prepared<Batch, { id: number }> = prepare(store, (db, param) =>
    db
      .selectFrom('change_proposal')
      .select('id')
      .where('settled_at', '<', param('before'))
      .orderBy('settled_at')
      .limit(param('batch')),
  )
  const keepSince: Prepared<{ value: string }, unknown> = prepare(store, (db, param) =>
    db
      .insertInto('setting')
      .values({ name: 'audit_kept_since', value: param('value') })
      .onConflict((conflict) =>
        conflict.column('name').doUpdateSet((row) => ({ value: row.ref('excluded.value') })),
      ),
  )
  return { oldEntries, oldChanges, oldProposals, keepSince }
}

/** Interval between calls of `step`. */
export const RECORDING_RETENTION_STEP_MS = 60_000
