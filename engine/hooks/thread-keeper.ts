/**
 * Keeps one thread with the operator's file in charge: loads the file again when it has changed,
 * and replaces a thread that has ended. A file that cannot be loaded leaves the last one in charge.
 */
import type { Cancel, Schedule } from '../../schema/clock.ts'
import type { Log } from '../../schema/contracts/log.ts'
import { OneAtATime } from '../../schema/one-at-a-time.ts'
import { type ReadState, WatchedFiles } from './watched-files.ts'
import type { HookThreadPort, ThreadListener } from './hook-thread.ts'
import type { LoadedFile, ThreadMessage } from './thread-messages.ts'
import { placeless, problemLine, shownPath, type ThrownProblem } from './thrown.ts'

export interface ThreadKeeperDeps {
  /** Absolute path. */
  readonly file: string
  readonly startThread: (listener: ThreadListener) => HookThreadPort
  readonly readState: ReadState
  readonly schedule: Schedule
  readonly log: Log
  readonly onMessage: (thread: HookThreadPort, message: ThreadMessage) => void
  /** The thread gives no answer any more. */
  readonly onGone: (thread: HookThreadPort, problem: ThrownProblem) => void
  /** The file cannot be loaded, or its thread has ended. */
  readonly onProblem: (problem: ThrownProblem) => void
  readonly onLoaded: (loaded: LoadedFile) => void
}

const LOAD_LIMIT_MS = 10_000
const FIRST_DELAY_MS = 1_000
const MAX_DELAY_MS = 30_000
/** A thread that has lived so long is replaced as quickly as the first one. */
const STEADY_MS = 60_000
/** A replaced thread has so long for what it has begun. */
const LEAVE_MS = 40_000
/** Calls that an application has taken may go on in its thread. */
const APPLICATION_LEAVE_MS = 4 * 3_600_000
/** Threads that another one has replaced, and that are not at their end. */
const MAX_LEAVING = 3
/** Threads that were ended, and do not end: no further one is started beside them. */
const MAX_STUCK = 3

interface Loaded {
  readonly thread: HookThreadPort
  readonly loaded: LoadedFile
}

export class ThreadKeeper {
  readonly #deps: ThreadKeeperDeps
  readonly #changes: WatchedFiles
  readonly #loading: OneAtATime<ThrownProblem | undefined>
  #current: Loaded | undefined
  /** Threads that end when they have nothing to do, the oldest first. */
  readonly #leaving = new Map<HookThreadPort, Cancel>()
  #candidate: HookThreadPort | undefined
  #stuck = 0
  #delayMs = FIRST_DELAY_MS
  #cancelReplacing: Cancel | undefined
  #cancelSteady: Cancel | undefined
  #isStopped = false
  #reloads = 0
  #failedReloads = 0
  #restarts = 0

  constructor(deps: ThreadKeeperDeps) {
    this.#deps = deps
    this.#loading = new OneAtATime(() => this.#load())
    this.#changes = new WatchedFiles({ ...deps, onChange: () => void this.reload() })
  }

  /** Undefined: there is none at this moment. */
  get current(): HookThreadPort | undefined {
    return this.#current?.thread
  }

  /** @returns why the file cannot be loaded. */
  async start(): Promise<ThrownProblem | undefined> {
    const problem = await this.#loading.request()
    if (problem === undefined && this.#current !== undefined)
      this.#say('is loaded', this.#current.loaded)
    return problem
  }

  /** Loads the file again; the thread in charge stays until that is done. */
  async reload(): Promise<void> {
    if (this.#isStopped) return
    const problem = await this.#loading.request()
    if (this.#isStopped) return
    if (problem === undefined) {
      this.#reloads += 1
      if (this.#current !== undefined) this.#say('is loaded again', this.#current.loaded)
    } else {
      this.#failedReloads += 1
      this.#noteBroken(problem)
    }
  }

  #say(what: string, { hooks, hasApplication }: LoadedFile): void {
    const found = [...hooks, ...(hasApplication ? ['an application of drachtio-srf'] : [])]
    const { file, log } = this.#deps
    log('info', `hooks: ${shownPath(file)} ${what}: ${found.join(', ')}`)
  }

  stop(): void {
    this.#isStopped = true
    this.#cancelReplacing?.()
    this.#cancelSteady?.()
    this.#changes.stop()
    for (const thread of [this.#candidate, this.current, ...this.#leaving.keys()])
      void thread?.terminate()
    for (const cancel of this.#leaving.values()) cancel()
  }

  telemetry(): Readonly<Record<string, number>> {
    return {
      hooks_loaded: this.#current === undefined ? 0 : 1,
      hooks_reloads_total: this.#reloads,
      hooks_failed_reloads_total: this.#failedReloads,
      hooks_restarts_total: this.#restarts,
      hooks_leaving_threads: this.#leaving.size,
      hooks_stuck_threads: this.#stuck,
    }
  }

  async #load(): Promise<ThrownProblem | undefined> {
    await this.#changes.mark([this.#deps.file])
    if (this.#isStopped) return undefined
    const { problem, files } = await this.#try().catch((error: unknown) => this.#refused(error))
    if (!this.#isStopped) await this.#changes.watch(files)
    return problem
  }

  /** The system has no room for a thread. */
  #refused(error: unknown): { problem: ThrownProblem; files: readonly string[] } {
    const { file } = this.#deps
    const why = error instanceof Error ? error.message : String(error)
    const problem = { ...placeless(`its thread cannot be started: ${why}`), file }
    return { problem, files: [file] }
  }

  /** Starts a thread, and waits until it has loaded the file and is in charge, or cannot. */
  #try(): Promise<{ problem?: ThrownProblem; files: readonly string[] }> {
    const { file, startThread, schedule } = this.#deps
    return new Promise((resolve) => {
      const fail = (problem: ThrownProblem, files: readonly string[] = []): void => {
        cancel()
        this.#end(thread)
        this.#candidate = undefined
        resolve({ problem, files: [...new Set([file, ...files])] })
      }
      const thread = startThread({
        onMessage: (message) => {
          if (message.type === 'broken') return fail(message.problem, message.files)
          if (message.type === 'imported') return void this.#changes.add(message.files)
          if (message.type !== 'loaded') return this.#deps.onMessage(thread, message)
          cancel()
          this.#candidate = undefined
          this.#takeOver({ thread, loaded: message })
          return resolve({ files: message.files })
        },
        onEnd: (why) => {
          if (this.#candidate === thread) fail({ ...placeless(why), file })
          else this.#gone(thread, why)
        },
      })
      this.#candidate = thread
      const limit = `it was not loaded within ${LOAD_LIMIT_MS / 1_000} s`
      const cancel = schedule(() => fail({ ...placeless(limit), file }), LOAD_LIMIT_MS)
    })
  }

  #takeOver(next: Loaded): void {
    const last = this.#current
    this.#current = next
    this.#cancelReplacing?.()
    this.#cancelReplacing = undefined
    this.#cancelSteady?.()
    this.#cancelSteady = this.#deps.schedule(() => {
      this.#delayMs = FIRST_DELAY_MS
    }, STEADY_MS)
    if (last !== undefined) this.#leave(last)
    for (const warning of next.loaded.warnings) this.#deps.log('warn', `hooks: ${warning}`)
    this.#deps.onLoaded(next.loaded)
  }

  #leave({ thread, loaded }: Loaded): void {
    const [oldest] = this.#leaving.keys()
    if (oldest !== undefined && this.#leaving.size >= MAX_LEAVING) this.#endLeaving(oldest)
    const limitMs = loaded.hasApplication ? APPLICATION_LEAVE_MS : LEAVE_MS
    this.#leaving.set(
      thread,
      this.#deps.schedule(() => this.#endLeaving(thread), limitMs),
    )
    thread.post({ type: 'leave' })
  }

  #endLeaving(thread: HookThreadPort): void {
    this.#leaving.get(thread)?.()
    this.#leaving.delete(thread)
    this.#end(thread)
    this.#deps.onGone(thread, placeless('its thread was replaced'))
  }

  #gone(thread: HookThreadPort, why: string): void {
    if (this.#isStopped) return
    this.#end(thread)
    const problem = { ...placeless(why), file: this.#deps.file }
    this.#deps.onGone(thread, problem)
    if (this.#leaving.has(thread)) {
      this.#leaving.get(thread)?.()
      this.#leaving.delete(thread)
      return
    }
    if (this.current !== thread) return
    this.#current = undefined
    this.#deps.onProblem(problem)
    this.#replaceLater()
  }

  #replaceLater(): void {
    this.#cancelSteady?.()
    this.#cancelReplacing = this.#deps.schedule(() => void this.#replace(), this.#delayMs)
    this.#delayMs = Math.min(MAX_DELAY_MS, this.#delayMs * 2)
  }

  #end(thread: HookThreadPort): void {
    this.#stuck += 1
    void thread.terminate().finally(() => {
      this.#stuck -= 1
    })
  }

  async #replace(): Promise<void> {
    if (this.#stuck >= MAX_STUCK) return this.#replaceLater()
    this.#restarts += 1
    const problem = await this.#loading.request()
    if (this.#isStopped || problem === undefined) return
    this.#noteBroken(problem)
    if (this.#current === undefined) this.#replaceLater()
  }

  #noteBroken(problem: ThrownProblem): void {
    this.#deps.onProblem(problem)
    const stays = this.#current === undefined ? '' : '; the last one stays in charge'
    this.#deps.log('error', `hooks: the file is not loaded${stays}: ${problemLine(problem)}`)
  }
}
