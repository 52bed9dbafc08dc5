import type { Log } from '../schema/contracts/log.ts'
import type { Storage, StorageProblem } from '../schema/storage/storage.ts'
import type { EventLog } from './event-log.ts'

/** Log line, event and metric when nothing can be stored, and when it can again. */
export class StorageNotes {
  readonly #storages: readonly Pick<Storage, 'problem'>[]
  readonly #events: EventLog
  readonly #log: Log
  #failures = 0

  constructor(storages: readonly Pick<Storage, 'problem'>[], events: EventLog, log: Log) {
    this.#storages = storages
    this.#events = events
    this.#log = log
  }

  /** Calls are refused from now on; undefined: they are taken again. */
  note(problem: StorageProblem | undefined): void {
    const reason = problem?.reason ?? null
    const type = problem ? 'storage.failed' : 'storage.recovered'
    this.#events.add({ type, tenantId: null, reason })
    if (problem === undefined)
      return this.#log('info', 'the database can be written again: new calls are taken')
    this.#failures += 1
    if (problem.code === 'server_unavailable') {
      const message =
        'the database server cannot be written: calls go on, and what they leave waits'
      return this.#log('error', message, { ...problem })
    }
    return this.#log('error', 'the database cannot be written: new calls are refused', {
      ...problem,
    })
  }

  telemetry() {
    return {
      storage_available: this.#storages.some(({ problem }) => problem !== undefined) ? 0 : 1,
      storage_failures_total: this.#failures,
    }
  }
}
