/**
 * The write-ahead log of a database: on the disk without an event loop that waits for it, and into
 * the file of the database before it is long.
 */
import { open } from 'node:fs/promises'
import { realpathSync } from 'node:fs'
import type Sqlite from 'better-sqlite3'
import { OneAtATime } from '../one-at-a-time.ts'
import { isDiskFailure } from './failure.ts'
import type { CommittedLog } from './sqlite-statements.ts'

/** Pages that are worth it: what is written again and again moves once. */
const LONG_PAGES = 1_000
/** A look takes 10 µs. */
const COMMITS_PER_LOOK = 8

interface LogState {
  readonly busy: 0 | 1
  /** Pages in the log, and those of them that the file of the database has. */
  readonly log: number
  readonly checkpointed: number
}

export class WriteAheadLog implements CommittedLog {
  readonly #sqlite: Sqlite.Database
  readonly #path: string
  readonly #syncs = new OneAtATime(() => this.#sync())
  /** After a failure the system may take for written what the disk has not. */
  #isUnsure = false
  #commits = 0
  #onLong: (() => void) | undefined

  constructor(sqlite: Sqlite.Database) {
    this.#sqlite = sqlite
    this.#path = `${realpathSync(sqlite.name)}-wal`
  }

  get isUnsure(): boolean {
    return this.#isUnsure
  }

  sync(): Promise<void> {
    return this.#syncs.request()
  }

  async #sync(): Promise<void> {
    if (this.#isUnsure) return this.#moveAll()
    try {
      const file = await open(this.#path, 'r+')
      try {
        await file.datasync()
      } finally {
        await file.close()
      }
    } catch (error) {
      this.#isUnsure = true
      throw error
    }
    // Another may have been told of a failure meanwhile.
    if (this.#isUnsure) this.#moveAll()
  }

  /**
   * The pages are written once more, to the file of the database.
   *
   * @throws {Error} not all of them.
   */
  #moveAll(): void {
    if (stateOf(this.#sqlite, 'TRUNCATE').busy === 1)
      throw new Error('the log of the database is read while it is to be emptied')
    this.#isUnsure = false
  }

  /** From now on `onLong` is called when the log should be moved, now and then. */
  watch(onLong: () => void): void {
    this.#onLong = onLong
  }

  committed(): void {
    this.#commits += 1
    if (this.#onLong === undefined || this.#commits % COMMITS_PER_LOOK !== 0) return
    if (this.#isLong()) this.#onLong()
  }

  /**
   * A write that has failed is told once, to whoever waits for the disk first: to another commit,
   * or to the thread that moves the log.
   */
  failed(error: unknown): void {
    if (isDiskFailure(error)) this.#isUnsure = true
  }

  /** A disk that cannot say it does not undo the commit. */
  #isLong(): boolean {
    try {
      const { log, checkpointed } = stateOf(this.#sqlite, 'NOOP')
      return log - checkpointed >= LONG_PAGES
    } catch {
      return false
    }
  }
}

/** `NOOP` moves nothing, `PASSIVE` what it can without a wait, `TRUNCATE` everything. */
export function stateOf(sqlite: Sqlite.Database, mode: 'NOOP' | 'PASSIVE' | 'TRUNCATE'): LogState {
  // The pragma has one row of these columns.
  const [state] = sqlite.pragma(`wal_checkpoint(${mode})`) as [LogState]
  return state
}
