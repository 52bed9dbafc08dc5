/** Makes files out of what was captured, one at a time, in a thread where the program has one. */
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { type Conversion, type ConversionOrder, convert } from './audio/convert.ts'

export interface Converter {
  /** Never rejects. One at a time. */
  convert(order: ConversionOrder): Promise<Conversion>
  stop(): Promise<void>
}

/** Beside the bundle; there is none when the program runs from its sources. */
const threadFile = new URL('./recording-worker.js', import.meta.url)

export const openConverter = (): Converter =>
  existsSync(threadFile) ? new ConversionThread(threadFile) : new ConversionHere()

/** It streams; needing more than this would be a bug. */
const MAX_HEAP_MB = 64

class ConversionThread implements Converter {
  readonly #file: URL
  #worker: Worker | undefined
  #isStopped = false

  constructor(file: URL) {
    this.#file = file
  }

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
    const worker = new Worker(this.#file, {
      resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB },
    })
    worker.unref()
    // What went wrong is the reason of the conversion that waits: `exit` follows.
    worker.on('error', () => undefined)
    worker.once('exit', () => {
      if (this.#worker === worker) this.#worker = undefined
    })
    return worker
  }
}

class ConversionHere implements Converter {
  #isStopped = false

  async convert(order: ConversionOrder): Promise<Conversion> {
    const steps = convert(order)
    for (;;) {
      if (this.#isStopped) {
        steps.return({ kind: 'failed', reason: 'the process stops' })
        return { kind: 'failed', reason: 'the process stops' }
      }
      const step = steps.next()
      if (step.done === true) return step.value
      await nextTurn()
    }
  }

  stop(): Promise<void> {
    this.#isStopped = true
    return Promise.resolve()
  }
}
