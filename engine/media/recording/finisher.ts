/**
 * Converts the captures of ended calls to files, one after the other. Captures are removed when the
 * file and its row are safe: any step may be repeated, by this process or by the next one.
 */
import { readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { DAY_MS, type Cancel, type Schedule } from '../../../schema/clock.ts'
import type { RecordingError } from '../../../schema/contracts/field-values.ts'
import type { EngineHappening, EventSink } from '../../../schema/contracts/engine.ts'
import type { Log } from '../../../schema/contracts/log.ts'
import { recordingFile } from '../../../schema/rules/media.ts'
import { type Conversion, type ConversionOrder, spooledFilesOf } from './audio/convert.ts'
import { type RecordedCall, recordingView } from '../../../schema/contracts/calls.ts'
import type { Store } from '../../../schema/storage/store.ts'
import { prepare, transaction, type Param } from '../../../schema/sql/query.ts'
import type { UnfinishedRecording, UnfinishedRecordings } from './unfinished-recordings.ts'

interface FinisherDeps {
  /** The folder of finished files. */
  readonly folder: string
  /** rtpengine's `--recording-dir`. */
  readonly spool: string
  readonly store: FinishedRecordings
  readonly unfinished: UnfinishedRecordings
  readonly converter: Converter
  readonly schedule: Schedule
  /** Milliseconds UTC. */
  readonly now: () => number
  readonly onEvent: (event: EngineHappening) => void
  /** Whether a capture has a name that we give to sessions. */
  readonly isOurs: (name: string) => boolean
  readonly log: Log
}

/** Further recordings are finished by the next start. */
const MAX_WAITING = 10_000
const RETRY_MS = 60_000
/** Captures without a call are removed after this time. */
const ORPHAN_MS = 7 * DAY_MS

export class Finisher {
  readonly #deps: FinisherDeps
  readonly #waiting = new Map<string, UnfinishedRecording>()
  /** Recordings that are tried again later. */
  readonly #failed = new Map<string, UnfinishedRecording>()
  readonly #totals = { made: 0, failed: 0 }
  #isBusy = false
  #isStopped = false
  #cancelRetry: Cancel | undefined

  constructor(deps: FinisherDeps) {
    this.#deps = deps
  }

  get totals(): Readonly<{ made: number; failed: number; waiting: number }> {
    return { ...this.#totals, waiting: this.#waiting.size + this.#failed.size }
  }

  add(recording: UnfinishedRecording): void {
    if (this.#isStopped || this.totals.waiting >= MAX_WAITING) return
    this.#waiting.set(recording.callUuid, recording)
    void this.#run()
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    this.#cancelRetry?.()
    await this.#deps.converter.stop()
  }

  /** Removes captures of ours that no call has claimed for days. */
  async removeOrphans(): Promise<void> {
    const { spool, now, isOurs, log } = this.#deps
    for (const folder of ['pcaps', 'metadata', 'tmp'])
      for (const name of await readdir(join(spool, folder)).catch(() => [])) {
        if (!isOurs(name.replace(/^rtpengine-meta-/, ''))) continue
        const path = join(spool, folder, name)
        const { mtimeMs } = await stat(path).catch(() => ({ mtimeMs: Infinity }))
        if (mtimeMs > now() - ORPHAN_MS) continue
        await rm(path, { force: true })
        log('warn', 'a capture that belongs to no call was removed', { path })
      }
  }

  async #run(): Promise<void> {
    if (this.#isBusy) return
    this.#isBusy = true
    for (;;) {
      const [next] = this.#waiting.values()
      if (next === undefined || this.#isStopped) break
      const problem = await this.#finish(next).catch(String)
      this.#waiting.delete(next.callUuid)
      if (problem !== undefined && !this.#isStopped) this.#tryLater(next, problem)
    }
    this.#isBusy = false
  }

  /** All that have failed, a minute after the first one. */
  #tryLater(recording: UnfinishedRecording, reason: string): void {
    const { schedule, log } = this.#deps
    this.#failed.set(recording.callUuid, recording)
    if (this.#cancelRetry) return
    log('error', 'recordings cannot be converted yet; their captures are kept', { reason })
    this.#cancelRetry = schedule(() => {
      this.#cancelRetry = undefined
      const failed = [...this.#failed.values()]
      this.#failed.clear()
      for (const each of failed) this.add(each)
    }, RETRY_MS)
  }

  /** Why it is to be tried again; undefined: it is done. */
  async #finish(recording: UnfinishedRecording): Promise<string | undefined> {
    const { store, folder, spool, converter, now, onEvent } = this.#deps
    const { callUuid, tenantId, startedAt, endedAt, tracks } = recording
    const name = recordingFile(callUuid)
    if (name === undefined) return undefined
    if (!(await store.has(callUuid))) {
      const order = { spool, target: join(folder, name), tracks, startedAt }
      const result = await converter.convert({ ...order, endedAt: endedAt ?? undefined })
      if (result.kind === 'failed' && startedAt > now() - ORPHAN_MS) return result.reason
      if (result.kind !== 'converted') return this.#giveUp(recording, result)
      const { kind: _, ...file } = result
      const recorded = { callUuid, tenantId, startedAt, ...file }
      await store.add(recorded)
      this.#totals.made += 1
      onEvent({ type: 'recording.ready', tenantId, recording: recorded })
    }
    await this.#removeCaptures(recording)
    return undefined
  }

  /**
   * A retry would change nothing. The captures stay as orphans, so that a person can inspect them.
   */
  async #giveUp(
    { callUuid, tenantId, tracks }: UnfinishedRecording,
    result: Unconverted,
  ): Promise<undefined> {
    const { store, unfinished, onEvent, log } = this.#deps
    const { error, reason } = failureOf(result)
    await store.fail(callUuid, error)
    const sessions = tracks.map(({ sessionId }) => sessionId)
    this.#totals.failed += 1
    log('warn', 'a call has no recording', { callUuid, reason, sessions })
    onEvent({ type: 'recording.failed', tenantId, callUuid, reason })
    await unfinished.remove(callUuid)
  }

  async #removeCaptures({ callUuid, tracks }: UnfinishedRecording): Promise<void> {
    const { spool, unfinished } = this.#deps
    for (const { sessionId } of tracks)
      for (const path of spooledFilesOf(spool, sessionId)) await rm(path, { force: true })
    await unfinished.remove(callUuid)
  }
}

type Unconverted = Exclude<Conversion, { readonly kind: 'converted' }>

function failureOf(result: Unconverted): {
  readonly error: RecordingError
  readonly reason: string
} {
  if (result.kind === 'failed') return { error: 'not_written', reason: result.reason }
  return result.packets === 0
    ? { error: 'nothing_captured', reason: 'nothing was captured' }
    : { error: 'unknown_codec', reason: 'nothing was captured in a codec that is known' }
}

export interface Converter {
  /** Never rejects. One at a time. */
  convert(order: ConversionOrder): Promise<Conversion>
  stop(): Promise<void>
}

/** Recordings in the database: a row for each file, and its webhook event, in one transaction. */
export class FinishedRecordings {
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

  /** The end time in the record of an ended call. Undefined: there is no record. */
  async endOf(callUuid: string): Promise<number | undefined> {
    return (await this.#statements.end.get({ callUuid }))?.end_stamp
  }

  /**
   * Notes in the record of the call that it has no recording. Resolves with false while that record
   * is not stored.
   */
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
