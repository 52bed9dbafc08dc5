/**
 * Moves the write-ahead log into the file of the database, in the thread of `checkpoint-worker.ts`.
 */
import { existsSync } from 'node:fs'
import { Worker } from 'node:worker_threads'
import type { Log } from '../contracts/log.ts'
import { startSmall } from '../small-thread.ts'
import type { LocalStore } from '../storage/store.ts'

/** Beside the bundle; there is none when the program runs from its sources. */
const threadFile = new URL('./checkpoint-worker.js', import.meta.url)

/**
 * A commit that finds a longer log moves it itself: without the thread it does not grow further.
 */
const MOST_PAGES = 8_000

/** Some minutes of requests under load. */
const MOST_LEFT_OUT = 1_000

export class Checkpoints {
  readonly #file: URL
  readonly #path: string
  readonly #log: Log
  readonly #onFailure: (error: unknown) => void
  #worker: Worker | undefined
  #isMoving = false
  /** The log has become long while it was moved. */
  #isWanted = false
  #isClosed = false
  /** Since it has worked last, and requests that are left out because of it. */
  #failures = 0
  #leftOut = 0

  constructor(file: URL, path: string, log: Log, onFailure: (error: unknown) => void) {
    this.#file = file
    this.#path = path
    this.#log = log
    this.#onFailure = onFailure
  }

  /**
   * Moves the log soon. The first time it starts the thread. While the disk fails, more and more
   * requests are left out.
   */
  request(): void {
    if (this.#isClosed) return
    this.#isWanted = this.#isMoving
    if (this.#isMoving) return
    if (this.#leftOut > 0) {
      this.#leftOut -= 1
      return
    }
    this.#isMoving = true
    try {
      this.#worker ??= this.#start()
    } catch (error) {
      // The system has no room for a thread: the commit that has asked for it is done.
      this.#isMoving = false
      return this.#failed(error)
    }
    this.#worker.postMessage('move', [])
  }

  /** The thread is at work. */
  get isMoving(): boolean {
    return this.#isMoving
  }

  /** Ends the thread and closes its connection; the next request starts another. */
  async stop(): Promise<void> {
    await this.#worker?.terminate()
  }

  /** `stop`, for good. */
  close(): Promise<void> {
    this.#isClosed = true
    return this.stop()
  }

  #start(): Worker {
    const options = { workerData: this.#path }
    const worker = startSmall(() => new Worker(this.#file, options), process.execArgv)
    worker.unref()
    worker.on('message', () => {
      this.#isMoving = false
      this.#failures = 0
      if (this.#isWanted) this.request()
    })
    worker.on('error', (error) => this.#failed(error))
    worker.on('exit', () => {
      this.#worker = undefined
      this.#isMoving = false
    })
    return worker
  }

  #failed(error: unknown): void {
    this.#onFailure(error)
    if (this.#failures === 0)
      this.#log('error', 'the log of the database could not be moved', { error })
    this.#failures += 1
    this.#leftOut = Math.min(2 ** this.#failures, MOST_LEFT_OUT)
  }
}

/** Undefined: commits move the log, as SQLite does by itself. */
export function openCheckpoints(
  { sqlite, writeAhead }: Pick<LocalStore, 'sqlite' | 'writeAhead'>,
  log: Log,
  file = threadFile,
): Checkpoints | undefined {
  if (writeAhead === undefined || !existsSync(file)) return undefined
  const checkpoints = new Checkpoints(file, sqlite.name, log, (error) => writeAhead.failed(error))
  sqlite.pragma(`wal_autocheckpoint = ${MOST_PAGES}`)
  writeAhead.watch(() => checkpoints.request())
  return checkpoints
}
