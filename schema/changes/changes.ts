/** Memory follows the database: what depends on a table is loaded again when another process has changed that table. */
import type { Cancel, Schedule } from '../clock.ts'
import type { Log } from '../contracts/log.ts'
import type { LocalStore } from '../open.ts'

/** Tables whose rows processes keep in memory. */
export const topics = [
  'application_key',
  'application_key_previous',
  'user',
  'tenant',
  'tenant_domain',
  'tenant_number',
  'extension',
  'ai_agent',
  'dispatcher_set',
  'dispatcher_node',
  'carrier',
  'carrier_gateway',
  'outbound_route',
  'inbound_route',
  'customer',
  'customer_number',
  'wallet',
  'rate_plan',
  'rate',
  'webhook_endpoint',
  'source_ban',
  'spend_guard',
] as const

export type Topic = (typeof topics)[number]

/** Which part of a topic has changed, such as the ids of its rows, or one prefix of the rates; `all`: it is not told. */
export type Details = ReadonlySet<string> | 'all'

export interface Follower {
  /** None: only when it is unknown what was missed. */
  readonly topics: readonly Topic[]
  /** Takes over what is stored now. Of several topics, the details are those of all. */
  readonly reload: (details: Details) => Promise<void>
  /** From the begin of one reload to that of the next, at least. Milliseconds. */
  readonly intervalMs?: number
  /** Beyond so many, the details are `all`. Absent: 50. */
  readonly maxDetails?: number
}

export interface Changes {
  /**
   * `reload` is called within a second after another process has committed, and perhaps after commits of this one.
   * When it is unknown what was missed, all load everything within a few seconds: one after the other, as they follow.
   * Changes during a reload cause one more; one that fails is repeated.
   */
  follow(follower: Follower): Cancel
  /** Tells what has changed since this was opened, and what changes from now on. Follow first, and load what you follow. */
  start(): Promise<void>
  stop(): Promise<void>
}

/** Who follows which topics, and when each of them loads again. */
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

/** Commits of other processes, such as a command, to an SQLite file. It does not tell what they have changed. */
const POLL_MS = 250

export class FileChanges implements Changes {
  readonly #deps: FollowersDeps
  readonly #followers: Followers
  readonly #hasForeignWrites: () => boolean
  #cancel: Cancel = () => undefined
  #isFailing = false

  constructor(store: Pick<LocalStore, 'sqlite'>, deps: FollowersDeps) {
    this.#deps = deps
    this.#followers = new Followers(deps)
    this.#hasForeignWrites = foreignWrites(store)
  }

  follow(follower: Follower): Cancel {
    return this.#followers.follow(follower)
  }

  start(): Promise<void> {
    this.#pollLater()
    return Promise.resolve()
  }

  stop(): Promise<void> {
    this.#cancel()
    this.#followers.stop()
    return Promise.resolve()
  }

  #pollLater(): void {
    this.#cancel = this.#deps.schedule(() => {
      this.#pollLater()
      this.#poll()
    }, POLL_MS)
  }

  #poll(): void {
    try {
      if (this.#hasForeignWrites()) this.#followers.changedAll()
      this.#isFailing = false
    } catch (error) {
      if (!this.#isFailing)
        this.#deps.log('error', 'what another process has changed cannot be read', { error })
      this.#isFailing = true
    }
  }
}

/** Returns a function that tells whether another connection has committed since it was last asked. */
function foreignWrites({ sqlite }: Pick<LocalStore, 'sqlite'>): () => boolean {
  const read = (): unknown => sqlite.pragma('data_version', { simple: true })
  let seen = read()
  return () => {
    const version = read()
    const isNew = version !== seen
    seen = version
    return isNew
  }
}

/** Rows that were written or removed, by which memory follows the database. */
export interface ChangedRows<Kind extends string> {
  readonly of: Kind
  readonly ids: readonly number[]
}

export type ChangedRouting = ChangedRows<
  'tenant' | 'carrier' | 'outbound_route' | 'inbound_route' | 'agent' | 'dispatcher_set'
>

export type ChangedPayers = ChangedRows<'customer' | 'extension' | 'tenant'>
