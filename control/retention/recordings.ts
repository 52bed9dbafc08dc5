/** Removes recordings past their retention, a few at a time: each with its file. */
import type { Log } from '../../schema/contracts/log.ts'
import type { Store } from '../../schema/open.ts'
import { RecordingStore } from '../pbx/recordings/recording-store.ts'

/** Interval between calls of `step`. */
export const RECORDING_RETENTION_STEP_MS = 60_000
/** More than calls can produce in a minute. */
const BATCH = 1_000
const DAY_MS = 86_400_000

export interface RecordingRetentionDeps {
  readonly store: Store
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
    const { now, log } = this.#deps
    let removed = 0
    try {
      for (const recording of await recordings.olderThan(now() - days * DAY_MS, BATCH)) {
        await recordings.remove(recording)
        removed += 1
      }
    } catch (error) {
      log('warn', 'old recordings could not be removed', { error: String(error) })
    }
    if (removed > 0) log('info', 'recordings past their retention were removed', { removed })
  }
}
