/** Removes recordings past their retention, a few at a time: each with its file. */
import type { Log } from '../../schema/contracts/log.ts'
import type { RecordingStore } from '../pbx/recordings/recording-store.ts'

/** Interval between calls of `step`. */
export const RECORDING_RETENTION_STEP_MS = 60_000
/** More than calls can produce in a minute. */
const BATCH = 1_000
const DAY_MS = 86_400_000

export interface RecordingRetentionDeps {
  readonly recordings: Pick<RecordingStore, 'olderThan' | 'remove'>
  /** Days after the start of a recording; 0 keeps them. */
  readonly days: number
  /** Milliseconds UTC. */
  readonly now: () => number
  readonly log: Log
}

export class RecordingRetention {
  readonly #deps: RecordingRetentionDeps
  #isBusy = false

  constructor(deps: RecordingRetentionDeps) {
    this.#deps = deps
  }

  /** Removes one batch, unless the last one is still being removed. */
  async step(): Promise<void> {
    const { days } = this.#deps
    if (days === 0 || this.#isBusy) return
    this.#isBusy = true
    await this.#removeOld(days)
    this.#isBusy = false
  }

  async #removeOld(days: number): Promise<void> {
    const { recordings, now, log } = this.#deps
    let removed = 0
    try {
      for (const recording of recordings.olderThan(now() - days * DAY_MS, BATCH)) {
        await recordings.remove(recording)
        removed += 1
      }
    } catch (error) {
      log('warn', 'old recordings could not be removed', { error: String(error) })
    }
    if (removed > 0) log('info', 'recordings past their retention were removed', { removed })
  }
}
