/** Recordings in the database: a row for each file, and its webhook event, in one transaction. */
import type { RecordingError } from '../../../schema/contracts/field-values.ts'
import { type RecordedCall, recordingView } from '../../../schema/contracts/calls.ts'
import type { EventSink } from '../../../schema/contracts/webhook-events.ts'
import type { Store } from '../../../schema/open.ts'
import { type Param, prepare, transaction } from '../../../schema/sql/query.ts'

export class RecordingStore {
  readonly #store: Store
  readonly #events: Pick<EventSink, 'wants' | 'writeAll'>
  readonly #statements: ReturnType<typeof statementsOf>

  constructor(store: Store, events: Pick<EventSink, 'wants' | 'writeAll'>) {
    this.#store = store
    this.#events = events
    this.#statements = statementsOf(store)
  }

  async has(callUuid: string): Promise<boolean> {
    return (await this.#statements.has.get({ callUuid })) !== undefined
  }

  /** Of the record of an ended call; undefined: there is none. */
  async endOf(callUuid: string): Promise<number | undefined> {
    return (await this.#statements.end.get({ callUuid }))?.end_stamp
  }

  /** In the record of the call: it has no recording. Resolves with false while that record is not stored. */
  async fail(callUuid: string, error: RecordingError): Promise<boolean> {
    return (await this.#statements.fail.run({ callUuid, error })) > 0
  }

  /** Safe to repeat: there is one row, and one event, for each call. */
  add(recording: RecordedCall): Promise<void> {
    const { callUuid, tenantId } = recording
    return transaction(this.#store, async () => {
      if ((await this.#statements.add.run(recording)) === 0) return
      if (!this.#events.wants('recording.ready', tenantId)) return
      const url = `/api/v1/calls/${callUuid}/recording`
      const data = { ...recordingView(recording), url }
      await this.#events.writeAll([{ type: 'recording.ready', tenantId, data }])
    })
  }
}

const statementsOf = (store: Store) => ({
  has: prepare(store, (db, param: Param<{ callUuid: string }>) =>
    db.selectFrom('recording').select('call_uuid').where('call_uuid', '=', param('callUuid')),
  ),
  end: prepare(store, (db, param: Param<{ callUuid: string }>) =>
    db.selectFrom('cdr').select('end_stamp').where('call_uuid', '=', param('callUuid')),
  ),
  fail: prepare(store, (db, param: Param<{ callUuid: string; error: RecordingError }>) =>
    db
      .updateTable('cdr')
      .set({ recording_error: param('error') })
      .where('call_uuid', '=', param('callUuid')),
  ),
  add: prepare(store, (db, param: Param<RecordedCall>) =>
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
