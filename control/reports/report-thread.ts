/**
 * Runs reports in the thread of `report-worker.ts`: the first one starts it, and the next one after
 * it has ended.
 */
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import type { Log } from '../../schema/contracts/log.ts'
import { startSmall } from '../../schema/small-thread.ts'
import { DatabaseUnavailable } from '../../schema/sql/failure.ts'
import { ApiError } from '../http/api-error.ts'
import type { ReportMaker, ThreadRequest } from './report-chunks.ts'
import type { PieceRequest, ReportDatabase, PieceReply } from './report-worker.ts'

interface PendingReply {
  readonly resolve: (reply: PieceReply) => void
  readonly reject: (error: Error) => void
}

/** The thread was restarted, or failed. */
export class ThreadEnded extends Error {
  override readonly name = 'ThreadEnded'
}

/** Reports are produced in pieces; needing more memory than this would be a bug. */
const MAX_HEAP_MB = 256
/**
 * Pieces of a report requested at once. With one, the thread would idle after each until this
 * thread, which serves calls, requests the next.
 */
const REQUESTED_AHEAD = 3

export class ReportThread implements ReportMaker {
  readonly #file: URL
  readonly #database: ReportDatabase
  readonly #log: Log
  #worker: Worker | undefined
  /** The requests that wait, by report; responses have the order of the requests. */
  readonly #waiting = new Map<number, PendingReply[]>()
  #lastReport = 0

  constructor(file: URL, database: ReportDatabase, log: Log) {
    this.#file = file
    this.#database = database
    this.#log = log
  }

  async *open(request: ThreadRequest): AsyncGenerator<Uint8Array, void> {
    const report = ++this.#lastReport
    const worker = (this.#worker ??= this.#start())
    const replies = [this.#ask(worker, { report, request })]
    try {
      while (replies.length < REQUESTED_AHEAD) replies.push(this.#ask(worker, { report }))
      for (;;) {
        const { bytes } = (await replies.shift()) ?? {}
        if (bytes === undefined) return
        replies.push(this.#ask(worker, { report }))
        yield bytes
      }
    } finally {
      this.#waiting.delete(report)
      worker.postMessage({ report, isOver: true } satisfies PieceRequest, [])
    }
  }

  /** Two messages instead of eight, for what is asked often. */
  async piece(request: ThreadRequest): Promise<Uint8Array> {
    const report = ++this.#lastReport
    const worker = (this.#worker ??= this.#start())
    try {
      const { bytes } = await this.#ask(worker, { report, request, isOnce: true })
      return bytes ?? nothing
    } finally {
      this.#waiting.delete(report)
    }
  }

  async stop(): Promise<void> {
    const worker = this.#worker
    if (worker === undefined) return
    const ended = once(worker, 'exit')
    await worker.terminate()
    await ended
  }

  #ask(worker: Worker, ask: PieceRequest): Promise<PieceReply> {
    const reply = new Promise<PieceReply>((resolve, reject) => {
      // A new thread does not know this report: it would seem to have ended.
      if (worker !== this.#worker) return reject(ended())
      const waiting = this.#waiting.get(ask.report)
      if (waiting === undefined) this.#waiting.set(ask.report, [{ resolve, reject }])
      else waiting.push({ resolve, reject })
      worker.postMessage(ask, [])
    })
    // When several fail, only the first is awaited.
    reply.catch(() => undefined)
    return reply
  }

  #start(): Worker {
    const options = {
      workerData: this.#database,
      resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB },
    }
    const worker = startSmall(() => new Worker(this.#file, options), process.execArgv)
    worker.unref()
    worker.on('message', (reply: PieceReply) => this.#settle(reply))
    worker.on('error', (error) => this.#log('error', 'reports: the thread failed', { error }))
    worker.on('exit', () => this.#lost(worker))
    return worker
  }

  #settle(reply: PieceReply): void {
    const waiting = this.#waiting.get(reply.report)?.shift()
    if (reply.error === undefined) return waiting?.resolve(reply)
    if (reply.isTooLong === true) return waiting?.reject(tooLong())
    const message = `report failed: ${reply.error}`
    waiting?.reject(reply.isUnavailable ? new DatabaseUnavailable(message) : new Error(message))
  }

  /** The next report starts a new thread. */
  #lost(worker: Worker): void {
    if (this.#worker === worker) this.#worker = undefined
    const waiting = [...this.#waiting.values()].flat()
    this.#waiting.clear()
    for (const { reject } of waiting) reject(ended())
  }
}

const nothing = new Uint8Array(0)

const ended = (): Error => new ThreadEnded('the report thread has ended')

const tooLong = (): ApiError =>
  new ApiError(
    503,
    'search_too_long',
    'The database server ended the search, because it took too long: ask for a shorter ' +
      'period, or with more filters',
  )
