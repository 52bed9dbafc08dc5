/** Who follows which topics, and when each of them loads again. */
import type { Cancel, Schedule } from '../clock.ts'
import type { Log } from '../contracts/log.ts'
import type { Details, Follower, Topic } from './changes.ts'

export interface FollowersDeps {
  readonly schedule: Schedule
  readonly log: Log
}

/** A reload that failed is repeated after this time. */
const RETRY_MS = 500
/** Beyond so many, all of it is loaded. */
const MAX_DETAILS = 50

export class Followers {
  readonly #deps: FollowersDeps
  readonly #followers = new Set<FollowerState>()
  /** They have perhaps missed something, and load everything in this order. */
  readonly #unsure = new Set<FollowerState>()
  #isLoadingUnsure = false
  #cancelDelay: Cancel | undefined

  constructor(deps: FollowersDeps) {
    this.#deps = deps
  }

  follow(follower: Follower): Cancel {
    const state = new FollowerState(follower, this.#deps)
    this.#followers.add(state)
    return () => {
      this.#followers.delete(state)
      this.#unsure.delete(state)
      state.stop()
    }
  }

  /** @param detail empty: all of the topic. */
  changed(topic: string, detail: string): void {
    for (const state of this.#followers) if (state.follows(topic)) state.changed(detail)
  }

  /**
   * What was missed is unknown: after `delayMs` they load everything, one after the other in the order in which they
   * have begun to follow. What is told meanwhile of one that waits is read at once.
   */
  changedAll(delayMs = 0): void {
    for (const state of this.#followers) this.#unsure.add(state)
    if (delayMs === 0) void this.#loadUnsure()
    else
      this.#cancelDelay ??= this.#deps.schedule(() => {
        this.#cancelDelay = undefined
        void this.#loadUnsure()
      }, delayMs)
  }

  stop(): void {
    this.#cancelDelay?.()
    for (const state of this.#followers) state.stop()
    this.#followers.clear()
    this.#unsure.clear()
  }

  async #loadUnsure(): Promise<void> {
    if (this.#isLoadingUnsure) return
    this.#isLoadingUnsure = true
    for (const state of this.#unsure) {
      this.#unsure.delete(state)
      await state.loadAll()
    }
    this.#isLoadingUnsure = false
  }
}

class FollowerState {
  readonly #follower: Follower
  readonly #topics: ReadonlySet<string>
  readonly #deps: FollowersDeps
  /** What has changed since the last reload began; undefined: nothing. */
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

  /** Resolves after one try: who fails goes on alone. */
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
        this.#deps.log('error', 'what another process has changed cannot be read', { error })
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
