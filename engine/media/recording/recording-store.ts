/** Finished recordings in the database, each with its webhook event in one transaction. */
import type { RecordingError } from '../../../schema/contracts/field-values.ts'
import { compile, type Param } from '../../../schema/sql/compiled.ts'
import type { RecordedCall } from '../../../schema/contracts/recordings.ts'
import type { EventSink } from '../../../schema/contracts/webhook-events.ts'
import type { Store } from '../../../schema/open.ts'
import { transaction } from '../../../schema/sql/sync-query.ts'
import { recordingView } from '../../../schema/rules/recording-view.ts'

export class RecordingStore {
  readonly #store: Store
  readonly #events: EventSink
  readonly #statements: ReturnType<typeof prepare>

  constructor(store: Store, events: EventSink) {
    this.#store = store
    this.#events = events
    this.#statements = prepare(store)
  }

  has(callUuid: string): boolean {
    return this.#statements.has.get({ callUuid }) !== undefined
  }

  /** Of the record of an ended call; undefined: there is none. */
  endOf(callUuid: string): number | undefined {
    return this.#statements.end.get({ callUuid })?.end_stamp
  }

  /** In the record of the call, which is stored: it has no recording. */
  fail(callUuid: string, error: RecordingError): void {
    this.#statements.fail.run({ callUuid, error })
  }

  /** Safe to repeat: there is one row, and one event, for each call. */
  add(recording: RecordedCall): void {
    const { callUuid, tenantId } = recording
    transaction(this.#store, () => {
      if (this.#statements.add.run(recording).changes === 0) return
      if (!this.#events.wants('recording.ready', tenantId)) return
      const url = `/api/v1/calls/${callUuid}/recording`
      const data = { ...recordingView(recording), url }
      this.#events.write({ type: 'recording.ready', tenantId, data })
    })
  }
}

const prepare = (store: Store) => ({
  has: compile(store, (db, param: Param<{ callUuid: string }>) =>
    db.selectFrom('recording').select('call_uuid').where('call_uuid', '=', param('callUuid')),
  ),
  end: compile(store, (db, param: Param<{ callUuid: string }>) =>
    db.selectFrom('cdr').select('end_stamp').where('call_uuid', '=', param('callUuid')),
  ),
  fail: compile(store, (db, param: Param<{ callUuid: string; error: RecordingError }>) =>
    db
      .updateTable('cdr')
      .set({ recording_error: param('error') })
      .where('call_uuid', '=', param('callUuid')),
  ),
  add: compile(store, (db, param: Param<RecordedCall>) =>
    db
      .insertInto('recording')
      .values({
        call_uuid: param('callUuid'),
        tenant_id: param('tenantId'),
        started_at: param('startedAt'),
        duration_ms: param('durationMs'),
        bytes: param('bytes'),
        sha256: param('sha256'),
      })
      .onConflict((conflict) => conflict.doNothing()),
  ),
})
