import { DAY_MS } from '../../../schema/clock.ts'
import type { Log } from '../../../schema/contracts/log.ts'
import type { Store } from '../../../schema/storage/store.ts'
import { type Recording, RecordingStore } from '../../calls/recording-store.ts'

/** More than calls can produce in a minute. */
const RECORDINGS_BATCH = 1_000

/**
 * An instance whose disk had the file has not come back for so long: its row is removed by another
 * one.
 */
const LOST_DAYS = 30

export interface RecordingRetentionDeps {
  readonly store: Store
  /** Other instances have recordings in the same database. */
  readonly hasOthers?: boolean
  readonly config: {
    /** Undefined: calls are not recorded. */
    readonly recording: { readonly folder: string } | undefined
    /** Days after the start of a recording; 0 keeps them. */
    readonly retention: { readonly recordingDays: number }
  }
  /** Milliseconds UTC. */
  readonly now: () => number
  readonly log: Log
}

export class RecordingRetention {
  readonly #deps: RecordingRetentionDeps
  readonly #recordings: RecordingStore | undefined
  #isBusy = false
  /** The last recording that was read, while others may follow. */
  #last: Recording | undefined

  constructor(deps: RecordingRetentionDeps) {
    const folder = deps.config.recording?.folder
    this.#deps = deps
    this.#recordings = folder === undefined ? undefined : new RecordingStore(deps.store, folder)
  }

  /** Removes one batch, unless the last one is still being removed. */
  async step(): Promise<void> {
    const { recordingDays: days } = this.#deps.config.retention
    if (days === 0 || this.#isBusy || this.#recordings === undefined) return
    this.#isBusy = true
    await this.#removeOld(this.#recordings, days)
    this.#isBusy = false
  }

  async #removeOld(recordings: RecordingStore, days: number): Promise<void> {
    const { now, log, hasOthers } = this.#deps
    let removed = 0
    try {
      const before = now() - days * DAY_MS
      const old = await recordings.olderThan(before, RECORDINGS_BATCH, this.#last)
      for (const recording of old) {
        const isLost = recording.started_at < before - LOST_DAYS * DAY_MS
        const isOurs = hasOthers !== true || isLost || (await recordings.isHere(recording))
        if (!isOurs) continue
        await recordings.remove(recording)
        removed += 1
      }
      this.#last = old.length === RECORDINGS_BATCH ? old.at(-1) : undefined
    } catch (error) {
      log('warn', 'old recordings could not be removed', { error: String(error) })
    }
    if (removed > 0) log('info', 'recordings past their retention were removed', { removed })
  }
}
