import { type Conversion, type ConversionOrder } from './audio/convert.ts'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { Worker } from 'node:worker_threads'
import { type Converter } from './finisher.ts'

/** The bundle has a file for the thread. Otherwise Node runs the source file. */
const bundled = new URL('./recording-worker.js', import.meta.url)

const threadFile = existsSync(bundled) ? bundled : new URL('./recording-worker.ts', import.meta.url)

/** The conversion streams: more would be a bug. */
const MAX_HEAP_MB = 64

/** Converts captures in a thread, one call at a time. */
export class ConversionThread implements Converter {
  #worker: Worker | undefined
  #isStopped = false

  async convert(order: ConversionOrder): Promise<Conversion> {
    if (this.#isStopped) return { kind: 'failed', reason: 'the process stops' }
    const worker = (this.#worker ??= this.#start())
    return new Promise((resolve) => {
      const settle = (result: Conversion): void => {
        worker.removeAllListeners('message')
        worker.removeListener('exit', ended)
        resolve(result)
      }
      const ended = (): void => settle({ kind: 'failed', reason: 'its thread has ended' })
      worker.once('message', settle)
      worker.once('exit', ended)
      worker.postMessage(order, [])
    })
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    const worker = this.#worker
    if (worker === undefined) return
    const ended = once(worker, 'exit')
    await worker.terminate()
    await ended
  }

  #start(): Worker {
    const worker = new Worker(threadFile, {
      resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB },
    })
    worker.unref()
    // The event `exit` follows, and ends the conversion that waits.
    worker.on('error', () => undefined)
    worker.once('exit', () => {
      if (this.#worker === worker) this.#worker = undefined
    })
    return worker
  }
}
