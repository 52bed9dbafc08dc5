/** One follower of topics: when it reloads, and which changes it has not read yet. */
import type { Cancel, Schedule } from '../clock.ts'
import type { Log } from '../contracts/log.ts'
import type { Topic, Details, Follower } from './changes.ts'

export interface FollowersDeps {
  readonly schedule: Schedule
  readonly log: Log
}

/** A reload that failed is repeated after this time. */
const RETRY_MS = 500

/** With more details, the whole topic is loaded. */
const MAX_DETAILS = 50

export class FollowerState {
  readonly #follower: Follower
  readonly #topics: ReadonlySet<string>
  readonly #deps: FollowersDeps
  /** Changes since the last reload began; undefined: none. */
  #behind: Set<string> | 'all' | undefined
  #isReloading = false
  #isFailing = false
  #isStopped = false
  #cancelPause: Cancel | undefined
  #onTried: (() => void) | undefined

  constructor(follower: Follower, deps: FollowersDeps) {
    this.#follower = follower
    this.#topics = new Set<Topic>(follower.topics)
    this.#deps = deps
  }

  follows(topic: string): boolean {
    return this.#topics.has(topic)
  }

  changed(detail: string): void {
    this.#add(detail === '' ? 'all' : [detail])
    this.#reloadNow()
  }

  /** Resolves after one attempt. A follower that fails retries by itself. */
  loadAll(): Promise<void> {
    if (this.#isStopped) return Promise.resolve()
    return new Promise((resolve) => {
      this.#onTried = resolve
      this.changed('')
    })
  }

  stop(): void {
    this.#isStopped = true
    this.#cancelPause?.()
    this.#onTried?.()
  }

  #add(details: Iterable<string> | 'all'): void {
    if (details === 'all') this.#behind = 'all'
    if (details === 'all' || this.#behind === 'all') return
    this.#behind ??= new Set()
    for (const detail of details) this.#behind.add(detail)
    if (this.#behind.size > (this.#follower.maxDetails ?? MAX_DETAILS)) this.#behind = 'all'
  }

  #reloadNow(): void {
    const details = this.#behind
    if (details === undefined || this.#isReloading) return
    if (this.#isStopped || this.#cancelPause !== undefined) return
    this.#behind = undefined
    this.#isReloading = true
    void this.#reload(details)
  }

  async #reload(details: Details): Promise<void> {
    const { intervalMs } = this.#follower
    if (intervalMs !== undefined) this.#pause(intervalMs)
    try {
      await this.#follower.reload(details)
      this.#isFailing = false
    } catch (error) {
      this.#add(details)
      if (!this.#isFailing && !this.#isStopped)
        this.#deps.log('error', 'changes of other processes cannot be read', { error })
      this.#isFailing = true
      this.#pause(RETRY_MS)
    } finally {
      this.#isReloading = false
      if (details === 'all') this.#onTried?.()
    }
    this.#reloadNow()
  }

  #pause(ms: number): void {
    if (this.#isStopped) return
    this.#cancelPause?.()
    this.#cancelPause = this.#deps.schedule(() => {
      this.#cancelPause = undefined
      this.#reloadNow()
    }, ms)
  }
}
