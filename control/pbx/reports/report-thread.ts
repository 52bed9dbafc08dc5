/** Reports from the thread of `report-worker.ts`, which is started anew when it has ended. */
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import type { Log } from '../../deps.ts'
import type { ReportMaker, ReportRequest } from './report-chunks.ts'
import type { Ask, Told } from './report-worker.ts'

interface Waiting {
  readonly resolve: (told: Told) => void
  readonly reject: (error: Error) => void
}

/** Reports are made in pieces; more memory than this would be a fault. */
const MAX_HEAP_MB = 256

export class ReportThread implements ReportMaker {
  readonly #file: URL
  readonly #path: string
  readonly #log: Log
  #worker: Worker | undefined
  readonly #waiting = new Map<number, Waiting>()
  #lastReport = 0

  /** `path` of the database. */
  constructor(file: URL, path: string, log: Log) {
    this.#file = file
    this.#path = path
    this.#log = log
    this.#worker = this.#start()
  }

  async *open(request: ReportRequest): AsyncGenerator<Uint8Array, void> {
    const report = ++this.#lastReport
    const worker = (this.#worker ??= this.#start())
    try {
      let { bytes } = await this.#ask(worker, { report, request })
      while (bytes !== undefined) {
        yield bytes
        bytes = (await this.#ask(worker, { report })).bytes
      }
    } finally {
      worker.postMessage({ report, isOver: true } satisfies Ask, [])
    }
  }

  async stop(): Promise<void> {
    const worker = this.#worker
    if (worker === undefined) return
    const ended = once(worker, 'exit')
    await worker.terminate()
    await ended
  }

  #ask(worker: Worker, ask: Ask): Promise<Told> {
    return new Promise((resolve, reject) => {
      // Another thread has nothing of this report: it would seem to be at its end.
      if (worker !== this.#worker) return reject(ended())
      this.#waiting.set(ask.report, { resolve, reject })
      worker.postMessage(ask, [])
    })
  }

  #start(): Worker {
    const worker = new Worker(this.#file, {
      workerData: { path: this.#path },
      resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB },
    })
    worker.unref()
    worker.on('message', (told: Told) => this.#told(told))
    worker.on('error', (error) => this.#log('error', 'reports: the thread failed', { error }))
    worker.on('exit', () => this.#lost(worker))
    return worker
  }

  #told(told: Told): void {
    const waiting = this.#waiting.get(told.report)
    this.#waiting.delete(told.report)
    if (told.error === undefined) waiting?.resolve(told)
    else waiting?.reject(new Error(`a report failed: ${told.error}`))
  }

  /** The next report starts another one. */
  #lost(worker: Worker): void {
    if (this.#worker === worker) this.#worker = undefined
    const waiting = [...this.#waiting.values()]
    this.#waiting.clear()
    for (const { reject } of waiting) reject(ended())
  }
}

const ended = (): Error => new Error('the thread of reports has ended')
