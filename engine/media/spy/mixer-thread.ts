/** Mixers in the thread of `mixer-worker.ts`, which runs once the first supervisor has come. */
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { Worker } from 'node:worker_threads'
import type { Log } from '../../../schema/contracts/log.ts'
import type { MediaEndpoint, AudioTarget } from '../../call/monitoring/listening-legs.ts'
import type { MixerOrder, MixerReport, RelayedSource } from './mixer-worker.ts'

export interface Mixers {
  /** Undefined: the mixer could not be opened. `lost`: it has failed. */
  open(id: string, relay: string, lost: () => void): Promise<MediaEndpoint | undefined>
  /** Sets the sources of the two parties. */
  setSources(id: string, sources: readonly RelayedSource[]): void
  play(id: string, target: AudioTarget | undefined): void
  close(id: string): void
}

/** A mixer takes about 0.5 % of a core. */
const MAX_MIXERS = 100

/** The bundle has a file for the thread. Otherwise Node runs the source file. */
const bundled = new URL('./mixer-worker.js', import.meta.url)
const threadFile = existsSync(bundled) ? bundled : new URL('./mixer-worker.ts', import.meta.url)

interface OpenMixer {
  readonly resolve: (endpoint: MediaEndpoint | undefined) => void
  readonly lost: () => void
}

export class MixerThread implements Mixers {
  readonly #file: URL
  readonly #log: Log
  #worker: Worker | undefined
  readonly #known = new Map<string, OpenMixer>()

  constructor(log: Log, file = threadFile) {
    this.#file = file
    this.#log = log
  }

  open(id: string, relay: string, lost: () => void): Promise<MediaEndpoint | undefined> {
    if (this.#known.size >= MAX_MIXERS || !this.#isStarted()) return Promise.resolve(undefined)
    return new Promise((resolve) => {
      this.#known.set(id, { resolve, lost })
      this.#order({ type: 'open', id, relay })
    })
  }

  setSources(id: string, sources: readonly RelayedSource[]): void {
    this.#order({ type: 'sources', id, sources })
  }

  play(id: string, target: AudioTarget | undefined): void {
    this.#order({ type: 'play', id, target })
  }

  close(id: string): void {
    const known = this.#known.get(id)
    if (known === undefined) return
    this.#known.delete(id)
    this.#order({ type: 'close', id })
    known.resolve(undefined)
  }

  async stop(): Promise<void> {
    const worker = this.#worker
    if (worker === undefined) return
    this.#known.clear()
    const ended = once(worker, 'exit')
    await worker.terminate()
    await ended
  }

  #order(order: MixerOrder): void {
    this.#worker?.postMessage(order, [])
  }

  /** False: the system has no room for a thread. */
  #isStarted(): boolean {
    try {
      this.#worker ??= this.#start()
      return true
    } catch (error) {
      this.#log('error', 'the mixer thread cannot be started', { error })
      return false
    }
  }

  #start(): Worker {
    const worker = new Worker(this.#file)
    worker.unref()
    worker.on('message', ({ id, endpoint }: MixerReport) => {
      const known = this.#known.get(id)
      if (endpoint === undefined) this.#known.delete(id)
      known?.resolve(endpoint)
    })
    worker.on('error', (error) => this.#log('error', 'the mixer thread failed', { error }))
    worker.on('exit', () => {
      if (this.#worker === worker) this.#worker = undefined
      const lost = [...this.#known.values()]
      this.#known.clear()
      for (const { resolve, lost: onLost } of lost) {
        resolve(undefined)
        onLost()
      }
    })
    return worker
  }
}
