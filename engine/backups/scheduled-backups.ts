/** Copies the database into a folder every so often, and keeps the newest copies. */
import { existsSync, readdirSync, rmSync } from 'node:fs'
import { join, parse } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { Log } from '../../schema/contracts/log.ts'
import type { LocalStore } from '../../schema/storage/store.ts'
import { copyDatabase, timeName } from '../../schema/sqlite/copy.ts'
import type { BackupOrder } from './backup-worker.ts'

export interface BackupPlan {
  readonly folder: string
  readonly intervalMs: number
  /** How many of the newest copies stay. */
  readonly keep: number
}

export interface ScheduledBackupsDeps {
  readonly plan: BackupPlan
  readonly databasePath: string
  /** Copies the database as it is now; rejects when that is not possible. */
  readonly make: (file: string) => Promise<void>
  /** Nothing can be stored at present, so that a copy would be of no use, or take the last room. */
  readonly isStorageFailing: () => boolean
  /** Milliseconds UTC. */
  readonly now: () => number
  readonly log: Log
}

/** Time between two calls of `tick`. */
export const BACKUP_TICK_MS = 60_000
/** Pause after a failure: an hour of a missing network disk makes no thousand log lines. */
const RETRY_MS = 600_000

export class ScheduledBackups {
  readonly #deps: ScheduledBackupsDeps
  readonly #name: string
  readonly #pattern: RegExp
  #triedAt = -Infinity
  #isRunning = false
  #succeededAt: number | undefined
  readonly #totals = { made: 0, failed: 0 }

  constructor(deps: ScheduledBackupsDeps) {
    this.#deps = deps
    this.#name = parse(deps.databasePath).name
    const literal = this.#name.replaceAll(/[^\w]/g, String.raw`\$&`)
    this.#pattern = new RegExp(String.raw`^${literal}-(\d{8}T\d{6}Z)\.db$`)
    const [newest] = this.#existing()
    this.#succeededAt = newest && timeOf(newest.time)
  }

  /** Makes one if it is time; to be called every `BACKUP_TICK_MS`. */
  tick(): void {
    const { now, plan, isStorageFailing } = this.#deps
    const isDue = now() >= (this.#succeededAt ?? -Infinity) + plan.intervalMs
    const mayTry = now() >= this.#triedAt + Math.min(RETRY_MS, plan.intervalMs)
    if (this.#isRunning || !isDue || !mayTry || isStorageFailing()) return
    this.#triedAt = now()
    this.#isRunning = true
    void this.#make().finally(() => (this.#isRunning = false))
  }

  /**
   * The age of a backup that never succeeded counts from 1970, so that an alert on the age fires.
   */
  telemetry(): Readonly<Record<string, number>> {
    const age = this.#deps.now() - (this.#succeededAt ?? 0)
    return {
      backups_made_total: this.#totals.made,
      backups_failed_total: this.#totals.failed,
      backup_age_seconds: Math.round(age / 1_000),
    }
  }

  async #make(): Promise<void> {
    const { make, now, log, plan } = this.#deps
    const startedAt = now()
    const file = join(plan.folder, `${this.#name}-${timeName(startedAt)}.db`)
    try {
      await make(file)
      this.#totals.made += 1
      this.#succeededAt = startedAt
      log('info', 'the database is backed up', { file, ms: now() - startedAt })
      this.#prune()
    } catch (error) {
      this.#totals.failed += 1
      log('error', 'the database could not be backed up', { file, error })
    }
  }

  #prune(): void {
    const { folder, keep } = this.#deps.plan
    for (const { file } of this.#existing().slice(keep)) rmSync(join(folder, file))
  }

  /** Newest first; only files of ours count, and only those are ever removed. */
  #existing(): readonly { readonly file: string; readonly time: string }[] {
    try {
      return readdirSync(this.#deps.plan.folder)
        .flatMap((file) => {
          const [, time] = this.#pattern.exec(file) ?? []
          return time === undefined ? [] : [{ file, time }]
        })
        .toSorted((a, b) => (a.time < b.time ? 1 : -1))
    } catch {
      return []
    }
  }
}

/** Reads the time in a name such as `20261122T093000Z`; milliseconds UTC. */
function timeOf(name: string): number {
  const [year, month, day, hour, minute, second] = [
    name.slice(0, 4),
    name.slice(4, 6),
    name.slice(6, 8),
    name.slice(9, 11),
    name.slice(11, 13),
    name.slice(13, 15),
  ].map(Number)
  return Date.UTC(year ?? 0, (month ?? 1) - 1, day, hour, minute, second)
}

/** Beside the bundle; there is none when the program runs from its sources. */
const threadFile = new URL('./backup-worker.js', import.meta.url)

export function makeBackup(store: LocalStore, file: string): Promise<void> {
  const { memory, name: path } = store.sqlite
  if (!memory && existsSync(threadFile)) return inThread({ path, file })
  return new Promise((resolve) => {
    copyDatabase(store, file)
    resolve()
  })
}

function inThread(order: BackupOrder): Promise<void> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(threadFile, { workerData: order })
    worker.unref()
    worker.once('message', () => resolve())
    worker.once('error', reject)
    worker.once('exit', () => reject(new Error('the thread of backups has ended')))
  })
}
