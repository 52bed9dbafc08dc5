/**
 * Calls that are over become files, one after the other. What was captured is removed when the file and its row last:
 * any step may be repeated, by this process or by the next one.
 */
import { readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Cancel, Schedule } from '../../../schema/clock.ts'
import type { RecordingError } from '../../../schema/contracts/field-values.ts'
import type { EngineHappening } from '../../../schema/contracts/engine.ts'
import type { Log } from '../../../schema/contracts/log.ts'
import { recordingFile } from '../../../schema/rules/media.ts'
import { type Conversion, spooledFilesOf } from './audio/convert.ts'
import type { Converter } from './converter.ts'
import type { RecordingStore } from './recording-store.ts'
import type { UnfinishedRecording, UnfinishedRecordings } from './unfinished.ts'

export interface FinisherDeps {
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
