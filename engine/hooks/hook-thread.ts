/** One thread with the operator's file in it, ended when it answers no more or uses too much. */
import { existsSync } from 'node:fs'
import { setFlagsFromString } from 'node:v8'
import { Worker } from 'node:worker_threads'
import type { Cancel, Schedule } from '../../schema/clock.ts'
import type { HookFallback } from '../../schema/contracts/hooks.ts'
import type { HookThreadData, HostMessage, ThreadMessage } from './thread-messages.ts'

/** The bundle has a file for the thread. Otherwise Node runs the source file. */
const bundled = new URL('./hook-worker.js', import.meta.url)
const threadFile = existsSync(bundled) ? bundled : new URL('./hook-worker.ts', import.meta.url)

/**
 * V8 compiles a function that WebAssembly imports after a thousand calls, and ends the process now
 * and then when threads share and free that code (D542). Node strips types by WebAssembly.
 */
const UNCOMPILED_IMPORTS = '--wasm-wrapper-tiering-budget=1000000000'

/** A look at whether the thread answers. */
const LOOK_EVERY_MS = 250
/** Looks in a row without an answer: a second in which this process was not busy itself. */
const MAX_SILENT_LOOKS = 4
const MB = 1_048_576

export interface ThreadListener {
  readonly onMessage: (message: ThreadMessage) => void
  /** Called once, however the thread ends. `why`: one clause for the operator. */
  readonly onEnd: (why: string) => void
}

/** A thread as its keeper sees it. */
export interface HookThreadPort {
  /** @throws {Error} the argument cannot be sent. */
  post(message: HostMessage): void
  /**
   * Ends it; `onEnd` is not called any more. Resolves when it has ended: a thread that waits in the
   * system, such as for another program, ends after that alone.
   */
  terminate(): Promise<unknown>
}

export interface HookThreadOptions {
  readonly file: string
  readonly fallback: HookFallback
  readonly memoryMb: number
  /** Environment of the thread. */
  readonly environment: Readonly<Record<string, string>>
  readonly schedule: Schedule
}

export class HookThread implements HookThreadPort {
  readonly #worker: Worker
  readonly #listener: ThreadListener
  readonly #schedule: Schedule
  readonly #memoryMb: number
  #hasEnded = false
  #isLoaded = false
  #isPinged = false
  #silentLooks = 0
  #cancelLook: Cancel | undefined

  constructor(options: HookThreadOptions, listener: ThreadListener) {
    const { file, fallback, memoryMb, environment, schedule } = options
    this.#listener = listener
    this.#schedule = schedule
    this.#memoryMb = memoryMb
    const workerData: HookThreadData = { file, fallback }
    setFlagsFromString(UNCOMPILED_IMPORTS)
    this.#worker = new Worker(threadFile, {
      workerData,
      env: { ...environment },
      execArgv: stripsTypes ? quietly : ['--experimental-strip-types', ...quietly],
      resourceLimits: { maxOldGenerationSizeMb: memoryMb },
      // Lines that the file prints come as messages; anything else is not ours to show.
      stdout: true,
      stderr: true,
    })
    const worker = this.#worker
    worker.unref()
    worker.stdout.resume()
    worker.stderr.resume()
    worker.on('message', (message: ThreadMessage) => this.#receive(message))
    worker.on('error', (error: Error & { readonly code?: string }) => {
      const isFull = error.code === 'ERR_WORKER_OUT_OF_MEMORY'
      this.#end(isFull ? this.#tooMuch : `its thread failed: ${error.message}`)
    })
    worker.on('exit', (code) => this.#end(`the file ended its thread with exit code ${code}`))
    this.#look()
  }

  post(message: HostMessage): void {
    this.#worker.postMessage(message, [])
  }

  terminate(): Promise<unknown> {
    this.#hasEnded = true
    this.#cancelLook?.()
    return this.#worker.terminate()
  }

  #receive(message: ThreadMessage): void {
    if (this.#hasEnded) return
    if (message.type === 'loaded') this.#isLoaded = true
    if (message.type !== 'pong') return this.#listener.onMessage(message)
    this.#isPinged = false
    if (message.usedBytes > this.#memoryMb * MB) this.#end(this.#tooMuch)
  }

  get #tooMuch(): string {
    return `it used more than HOOKS_MEMORY_MB, ${this.#memoryMb} MB`
  }

  /** While the file is loaded, its keeper has a limit for it. */
  #look(): void {
    this.#cancelLook = this.#schedule(() => {
      if (this.#isPinged) this.#silentLooks += 1
      else {
        this.#silentLooks = 0
        if (this.#isLoaded) this.#ping()
      }
      if (this.#silentLooks < MAX_SILENT_LOOKS) this.#look()
      else this.#end('its thread did not answer for a second')
    }, LOOK_EVERY_MS)
  }

  #ping(): void {
    this.#isPinged = true
    this.post({ type: 'ping' })
  }

  #end(why: string): void {
    if (this.#hasEnded) return
    void this.terminate()
    this.#listener.onEnd(why)
  }
}

/** Node 22.14 to 22.17 need the flag. */
const stripsTypes = process.features.typescript !== false
const quietly = ['--disable-warning=ExperimentalWarning']
