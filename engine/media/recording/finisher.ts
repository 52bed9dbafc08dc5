/**
 * Calls that are over become files, one after the other. What was captured is removed when the file and its row last:
 * any step may be repeated, by this process or by the next one.
 */
import { readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Cancel, Schedule } from '../../../schema/clock.ts'
import type { RecordingError } from '../../../schema/contracts/field-values.ts'
import type { EngineHappening, EventSink } from '../../../schema/contracts/engine.ts'
import type { Log } from '../../../schema/contracts/log.ts'
import { recordingFile } from '../../../schema/rules/media.ts'
import { type Conversion, spooledFilesOf, type ConversionOrder, convert } from './audio/convert.ts'
import type { UnfinishedRecording, UnfinishedRecordings } from './recorder.ts'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { type RecordedCall, recordingView } from '../../../schema/contracts/calls.ts'
import type { Store } from '../../../schema/open.ts'
import { prepare, transaction, type Param } from '../../../schema/sql/query.ts'

interface FinisherDeps {
  /** Where files go. */
  readonly folder: string
  /** rtpengine's `--recording-dir`. */
  readonly spool: string
  readonly store: RecordingStore
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

/** More wait on the disk alone, for the next start. */
const MAX_WAITING = 10_000
const RETRY_MS = 60_000
/** What no call claims any more is kept so long. */
const ORPHAN_MS = 7 * 86_400_000

export class Finisher {
  readonly #deps: FinisherDeps
  readonly #waiting = new Map<string, UnfinishedRecording>()
  /** To be tried again. */
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
    log('error', 'recordings cannot be finished yet; what was captured is kept', { reason })
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

  /** Trying again would change nothing. What was captured is kept as an orphan, for a person to look at. */
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

// Makes files out of what was captured, one at a time, in a thread where the program has one.

export interface Converter {
  /** Never rejects. One at a time. */
  convert(order: ConversionOrder): Promise<Conversion>
  stop(): Promise<void>
}

/** Beside the bundle; there is none when the program runs from its sources. */
const threadFile = new URL('./recording-worker.js', import.meta.url)

export const openConverter = (): Converter =>
  existsSync(threadFile) ? new ConversionThread(threadFile) : new ConversionHere()

/** It streams; needing more than this would be a bug. */
const MAX_HEAP_MB = 64

class ConversionThread implements Converter {
  readonly #file: URL
  #worker: Worker | undefined
  #isStopped = false

  constructor(file: URL) {
    this.#file = file
  }

  async convert(order: ConversionOrder): Promise<Conversion> {
    if (this.#isStopped) return { kind: 'failed', reason: 'the process stops' }
    const worker = (this.#worker ??= this.#start())
    return new Promise((resolve) => {
      const settle = (result: Conversion): void => {
        worker.removeAllListeners('message')
        worker.removeListener('exit', ended)
        resolve(result)
      }
      const ended = (): void => settle({ kind: 'failed', reason: 'its thread has ended' })
      worker.once('message', settle)
      worker.once('exit', ended)
      worker.postMessage(order, [])
    })
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    const worker = this.#worker
    if (worker === undefined) return
    const ended = once(worker, 'exit')
    await worker.terminate()
    await ended
  }

  #start(): Worker {
    const worker = new Worker(this.#file, {
      resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB },
    })
    worker.unref()
    // What went wrong is the reason of the conversion that waits: `exit` follows.
    worker.on('error', () => undefined)
    worker.once('exit', () => {
      if (this.#worker === worker) this.#worker = undefined
    })
    return worker
  }
}

class ConversionHere implements Converter {
  #isStopped = false

  async convert(order: ConversionOrder): Promise<Conversion> {
    const steps = convert(order)
    for (;;) {
      if (this.#isStopped) {
        steps.return({ kind: 'failed', reason: 'the process stops' })
        return { kind: 'failed', reason: 'the process stops' }
      }
      const step = steps.next()
      if (step.done === true) return step.value
      await nextTurn()
    }
  }

  stop(): Promise<void> {
    this.#isStopped = true
    return Promise.resolve()
  }
}

// Recordings in the database: a row for each file, and its webhook event, in one transaction.

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
