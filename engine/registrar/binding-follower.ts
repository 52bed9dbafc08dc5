import type { Schedule, Cancel } from '../../schema/clock.ts'
import type { Log } from '../../schema/contracts/log.ts'
import { inSlices, SLICE } from '../../schema/sql/query.ts'
import type { BindingStore } from './binding-store.ts'
import { type StoredBinding, BINDING_CHANNEL } from './binding-store.ts'
import { OneAtATime } from '../../schema/one-at-a-time.ts'

/** Notices between instances that share a database. */
export interface BindingNotices {
  on(channel: string, handler: (payload: string) => void): Cancel
  /** Something may have been missed. */
  onGap(handler: () => void): Cancel
  /** Resolves when the channels so far are listened to, or a gap follows. */
  listening(): Promise<void>
}

interface BindingFollowerDeps {
  /** Name of this instance. */
  readonly instance: string
  readonly bindings: Pick<BindingStore, 'loadOf' | 'extensionIds' | 'isWriting'>
  /** Extensions that have bindings here. */
  readonly known: () => readonly number[]
  /** Takes over what is stored of these extensions. */
  readonly take: (extensionIds: readonly number[], stored: readonly StoredBinding[]) => void
  readonly now: () => number
  readonly schedule: Schedule
  readonly log: Log
}

/** Pause between two reads. */
const WAIT_MS = 50

const RETRY_MS = 500

/**
 * Reads bindings again that other instances have changed. The extension of a notice is read at
 * once, as a call for the phone may come next; those of notices within a moment after that are read
 * together. After a gap all extensions are read, a slice at a time, and extensions of new notices
 * come first.
 */
export class BindingFollower {
  readonly #deps: BindingFollowerDeps
  readonly #stale = new Set<number>()
  /** Extensions to read after a gap. */
  readonly #unsure = new Set<number>()
  readonly #reads = new OneAtATime(() => this.#read())
  /** Extensions written here since the present read began: the read may find older bindings. */
  #written: Set<number> | undefined
  #hasMissed = false
  #readAt = -Infinity
  #isFailing = false
  #isStopped = false
  #cancelTimer: Cancel | undefined
  #cancelNotices: readonly Cancel[] = []

  constructor(deps: BindingFollowerDeps) {
    this.#deps = deps
  }

  /** Resolves when nothing that is written from then on is missed. */
  listen(notices: BindingNotices): Promise<void> {
    this.#cancelNotices = [
      notices.on(BINDING_CHANNEL, (payload) => this.#onNotice(payload)),
      notices.onGap(() => this.#readAllSoon()),
    ]
    return notices.listening()
  }

  /** The stored bindings of this extension may differ from those in memory. */
  changed(extensionId: number): void {
    this.#stale.add(extensionId)
    this.#again()
  }

  /** A write of this extension begins here. */
  writing(extensionId: number): void {
    this.#written?.add(extensionId)
  }

  stop(): void {
    this.#isStopped = true
    for (const cancel of this.#cancelNotices) cancel()
    this.#cancelTimer?.()
    this.#cancelTimer = undefined
  }

  /** `<node> <id>`, as `BINDING_CHANNEL` says. */
  #onNotice(payload: string): void {
    const blank = payload.lastIndexOf(' ')
    const extensionId = Number(payload.slice(blank + 1))
    if (payload.slice(0, blank) === this.#deps.instance || !Number.isSafeInteger(extensionId))
      return
    this.changed(extensionId)
  }

  #readAllSoon(): void {
    this.#hasMissed = true
    this.#again()
  }

  readonly #readNow = (): void => {
    this.#cancelTimer = undefined
    this.#readAt = this.#deps.now()
    void this.#readOnce()
  }

  async #readOnce(): Promise<void> {
    try {
      await this.#reads.request()
      this.#isFailing = false
      if (this.#stale.size + this.#unsure.size > 0 || this.#hasMissed) this.#again()
    } catch (error) {
      if (!this.#isFailing)
        this.#deps.log('error', 'registrations at other instances cannot be read', { error })
      this.#isFailing = true
      this.#again(RETRY_MS)
    }
  }

  #again(leastMs = 0): void {
    if (this.#isStopped) return
    const pauseMs = Math.min(WAIT_MS, this.#readAt + WAIT_MS - this.#deps.now())
    const delayMs = Math.max(leastMs, pauseMs, 0)
    this.#cancelTimer ??= this.#deps.schedule(this.#readNow, delayMs)
  }

  async #read(): Promise<void> {
    const { bindings, take, now } = this.#deps
    if (this.#hasMissed) await this.#findUnsure()
    const ids = [...this.#next()]
    this.#written = new Set()
    try {
      const stored = await bindings.loadOf(ids, now())
      for (const id of this.#written) this.#stale.add(id)
      const isCurrent = (id: number): boolean => !this.#stale.has(id)
      take(
        ids.filter(isCurrent),
        stored.filter(({ extensionId }) => isCurrent(extensionId)),
      )
    } catch (error) {
      for (const id of ids) this.#stale.add(id)
      throw error
    } finally {
      this.#written = undefined
    }
  }

  async #findUnsure(): Promise<void> {
    this.#hasMissed = false
    const { known, bindings } = this.#deps
    try {
      for await (const ids of inSlices(known())) for (const id of ids) this.#unsure.add(id)
      for await (const ids of bindings.extensionIds()) for (const id of ids) this.#unsure.add(id)
    } catch (error) {
      this.#hasMissed = true
      throw error
    }
  }

  /** The extensions to read next: at most a slice. */
  *#next(): Generator<number> {
    let room = SLICE
    for (const waiting of [this.#stale, this.#unsure])
      for (const id of waiting) {
        if (room === 0) return
        if (this.#deps.bindings.isWriting(id)) continue
        this.#stale.delete(id)
        this.#unsure.delete(id)
        room -= 1
        yield id
      }
  }
}
