/**
 * Detects that nothing can be stored: commits that have failed for two seconds, a database file
 * that is no longer the opened one, or a missing write-ahead log.
 */
import { existsSync, realpathSync, statSync } from 'node:fs'
import type { Every, Schedule } from '../clock.ts'
import type { LocalStore } from './store.ts'
import { runEach, WriteQueue } from './write-queue.ts'
import { POLL_MS, FailureTimer } from './failure-timer.ts'
import type { StorageProblem } from './storage.ts'

export interface StorageWatchDeps {
  readonly store: LocalStore
  readonly schedule: Schedule
  readonly every: Every
  /**
   * The write-ahead log was removed; other readers of the database in this process should close it.
   */
  readonly onLogGone: () => void
  /** Called when nothing can be stored, and with undefined when it works again. */
  readonly onChange: (problem: StorageProblem | undefined) => void
}

/**
 * How often a test row is written on a quiet system, so that a full disk is detected before the
 * next call.
 */
const POLLS_PER_TRIAL = 10
const trial =
  "INSERT INTO setting (name, value) VALUES ('storage_trial', ?) " +
  'ON CONFLICT DO UPDATE SET value = excluded.value'

export class StorageWatch {
  readonly #deps: StorageWatchDeps
  readonly #trial: WriteQueue
  readonly #failureTimer: FailureTimer
  #files: readonly WatchedFile[]
  #cancel: () => void
  #polls = 0
  #reported: string | undefined

  /** Create it after the database was written to: then its log exists. */
  constructor(deps: StorageWatchDeps) {
    this.#deps = deps
    this.#trial = new WriteQueue({ ...deps, run: runEach, onFailure: () => undefined })
    this.#files = filesOf(deps.store)
    this.#failureTimer = new FailureTimer(deps.store.storage)
    this.#cancel = deps.every(POLL_MS, () => this.#poll())
  }

  /** Allows waiting writes from now on, wherever the files are. */
  stop(): void {
    this.#cancel()
    this.#cancel = () => undefined
    if (this.#deps.store.sqlite.open) this.#deps.store.sqlite.pragma('query_only = OFF')
  }

  #poll(): void {
    this.#checkFiles()
    this.#failureTimer.poll()
    this.#polls += 1
    if (this.#polls % POLLS_PER_TRIAL === 0 && this.#trial.waiting === 0)
      this.#trial.add({ run: async () => this.#write() })
    this.#report()
  }

  /** Writes to a removed file are rejected, so that they wait until it is back. */
  #checkFiles(): void {
    const { sqlite, storage } = this.#deps.store
    const wasMissing = storage.fileProblem !== undefined
    const missing = this.#files.find((file) => !isStillThere(file))
    if (missing !== undefined && this.#hasNewLog(missing)) return this.#checkFiles()
    storage.fileProblem = missing && {
      code: 'database_gone',
      reason: `${missing.path} is gone, or another file`,
    }
    if (wasMissing !== (missing !== undefined))
      sqlite.pragma(`query_only = ${missing ? 'ON' : 'OFF'}`)
  }

  /**
   * A removed log is still open here: its content is checkpointed into the database, which gets a
   * new log.
   */
  #hasNewLog({ path }: WatchedFile): boolean {
    const { sqlite } = this.#deps.store
    if (path === sqlite.name || existsSync(path)) return false
    this.#deps.onLogGone()
    try {
      sqlite.pragma('query_only = OFF')
      sqlite.pragma('wal_checkpoint(PASSIVE)')
      // Fails while another connection has the database open.
      sqlite.pragma('journal_mode = DELETE')
      sqlite.pragma('journal_mode = WAL')
      this.#write()
    } catch {
      sqlite.pragma('query_only = ON')
      return false
    }
    this.#files = filesOf(this.#deps.store)
    return true
  }

  #write(): void {
    this.#deps.store.sqlite.prepare(trial).run(String(this.#polls))
  }

  #report(): void {
    const { problem } = this.#deps.store.storage
    if (problem?.code === this.#reported) return
    this.#reported = problem?.code
    this.#deps.onChange(problem)
  }
}

interface WatchedFile {
  readonly path: string
  readonly inode: number
  readonly device: number
}

function filesOf({ sqlite }: LocalStore): readonly WatchedFile[] {
  if (sqlite.memory) return []
  return [sqlite.name, `${realpathSync(sqlite.name)}-wal`].flatMap((path) => {
    const stats = statSync(path, { throwIfNoEntry: false })
    return stats ? [{ path, inode: stats.ino, device: stats.dev }] : []
  })
}

function isStillThere({ path, inode, device }: WatchedFile): boolean {
  try {
    const { ino, dev } = statSync(path)
    return ino === inode && dev === device
  } catch {
    return false
  }
}
