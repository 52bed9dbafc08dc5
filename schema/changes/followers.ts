import type { Cancel } from '../clock.ts'
import type { Follower } from './changes.ts'
import { type FollowersDeps, FollowerState } from './follower-state.ts'

/** The followers of topics, and when each of them reloads. */
export class Followers {
  readonly #deps: FollowersDeps
  readonly #followers = new Set<FollowerState>()
  /** Followers that may have missed changes. They load everything in this order. */
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
   * Changes may have been missed: after `delayMs` the followers load everything, one after the
   * other in the order in which they began to follow. A change that is reported to a waiting
   * follower is read at once.
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

  readForeign(): void {
    // A server tells the changes of each connection.
  }

  passOver(): void {
    // A server tells the changes of each connection.
  }

  stop(): Promise<void> {
    this.#cancelDelay?.()
    for (const state of this.#followers) state.stop()
    this.#followers.clear()
    this.#unsure.clear()
    return Promise.resolve()
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
