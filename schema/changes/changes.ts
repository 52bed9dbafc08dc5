/**
 * Memory follows the database: what depends on a table is loaded again when another process has
 * changed that table.
 */
import type { Cancel, Schedule } from '../clock.ts'
import type { Log } from '../contracts/log.ts'
import type { LocalStore } from '../storage/store.ts'
import type { ServerNotices } from './server-notices.ts'

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

/**
 * Which part of a topic has changed, such as ids of rows or a prefix of the rates; `all`: unknown.
 */
export type Details = ReadonlySet<string> | 'all'

export interface Follower {
  /** Empty: it reloads only when changes may have been missed. */
  readonly topics: readonly Topic[]
  /** Reads what is stored now. The details are those of all topics together. */
  readonly reload: (details: Details) => Promise<void>
  /** Least time between the starts of two reloads. Milliseconds. */
  readonly intervalMs?: number
  /** Beyond so many, the details are `all`. Absent: 50. */
  readonly maxDetails?: number
}

export interface Changes {
  /**
   * `reload` is called within a second after another process has committed, and perhaps after
   * commits of this one. After changes may have been missed, all followers load everything within a
   * few seconds, one after the other. Changes during a reload cause another one. A reload that
   * fails is repeated.
   */
  follow(follower: Follower): Cancel
  /**
   * Reports changes since this was opened, and from now on. Call `follow`, and load the data,
   * before.
   */
  start(): Promise<void>
  stop(): Promise<void>
  /**
   * Reports what others have committed so far. A thread of this process has the write lock of an
   * SQLite file.
   */
  readForeign(): void
  /** Does not report what was committed since: a thread of this process has, and nobody else. */
  passOver(): void
}

export interface FollowersDeps {
  readonly schedule: Schedule
  readonly log: Log
}

/** A reload that failed is repeated after this time. */
const RETRY_MS = 500
/** With more details, the whole topic is loaded. */
const MAX_DETAILS = 50

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

class FollowerState {
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

// ---- an SQLite file ----------------------------------------------------------------------

/**
 * SQLite reports that another process, such as a command, has committed, but not which rows have
 * changed.
 */
const FILE_POLL_MS = 250

export class FileChanges extends Followers implements Changes {
  readonly #log: Log
  readonly #schedule: Schedule
  readonly #hasForeignWrites: () => boolean
  #cancel: Cancel = () => undefined
  #isFailing = false

  constructor(store: Pick<LocalStore, 'sqlite'>, deps: FollowersDeps) {
    super(deps)
    this.#log = deps.log
    this.#schedule = deps.schedule
    this.#hasForeignWrites = foreignWrites(store)
  }

  start(): Promise<void> {
    this.#pollLater()
    return Promise.resolve()
  }

  override readForeign(): void {
    this.#poll()
  }

  override passOver(): void {
    this.#hasForeignWrites()
  }

  override stop(): Promise<void> {
    this.#cancel()
    return super.stop()
  }

  #pollLater(): void {
    this.#cancel = this.#schedule(() => {
      this.#pollLater()
      this.#poll()
    }, FILE_POLL_MS)
  }

  #poll(): void {
    try {
      if (this.#hasForeignWrites()) this.changedAll()
      this.#isFailing = false
    } catch (error) {
      if (!this.#isFailing)
        this.#log('error', 'changes of other processes cannot be read', { error })
      this.#isFailing = true
    }
  }
}

/** Returns a function that says whether another connection has committed since the last call. */
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

// ---- a PostgreSQL database ---------------------------------------------------------------

// Triggers tell its changes with NOTIFY and write them to `change_counter`, which is read every
// second, should a notice be lost.

export interface ServerChangesDeps extends FollowersDeps {
  readonly notices: ServerNotices
  readonly schedule: Schedule
  readonly random: () => number
}

const CHANNEL = 'tollgate_changes'
const SERVER_POLL_MS = 1_000
/**
 * The counter keeps its rows so long. A process that has not polled for half of it loads
 * everything.
 */
const RETENTION_MS = 600_000
const POLLS_PER_CLEANING = 300
/**
 * A gap concerns all nodes at once, and each reads everything: each starts at a random moment
 * within this time.
 */
const SPREAD_MS = 2_000

/**
 * `horizon` is the oldest transaction that may still be under way: all before it are seen. Numbers
 * of transactions fit a float, and a bigint arrives as text.
 */
const pollQuery = `
  SELECT s.horizon, s.at, c.version, c.topic, c.detail
    FROM (SELECT pg_snapshot_xmin(pg_current_snapshot())::text AS horizon,
                 floor(extract(epoch FROM clock_timestamp()) * 1000)::text AS at) s
    LEFT JOIN change_counter c ON c.version >= $1`

interface Change {
  readonly version: string
  readonly topic: string
  readonly detail: string
}

interface Row {
  readonly horizon: string
  readonly at: string
  readonly version: string | null
  readonly topic: string | null
  readonly detail: string | null
}

const isChange = (row: Row): row is Row & Change => row.version !== null

export class ServerChanges extends Followers implements Changes {
  readonly #deps: ServerChangesDeps
  #cancel: Cancel = () => undefined
  #cancelNotices: readonly Cancel[] = []
  #horizon = 0
  #polledAt: number | undefined
  /** Changes since the horizon that followers know, with their versions. */
  readonly #seen = new Map<string, number>()
  #polls = 0
  #isStopped = false

  /** `notices` are started. */
  static async open(deps: ServerChangesDeps): Promise<ServerChanges> {
    const changes = new ServerChanges(deps)
    await changes.#poll()
    return changes
  }

  private constructor(deps: ServerChangesDeps) {
    super(deps)
    this.#deps = deps
  }

  async start(): Promise<void> {
    const { notices } = this.#deps
    this.#cancelNotices = [
      notices.on(CHANNEL, (payload) => this.#onNotice(payload)),
      notices.onGap(() => this.#missed()),
    ]
    await this.#poll()
    this.#pollLater()
  }

  override stop(): Promise<void> {
    this.#isStopped = true
    this.#cancel()
    for (const cancel of this.#cancelNotices) cancel()
    return super.stop()
  }

  /** First the changes that the counter still has, by their details. */
  #missed(): void {
    void this.#poll()
    this.#loadAll()
  }

  #loadAll(): void {
    this.changedAll(this.#deps.random() * SPREAD_MS)
  }

  #onNotice(payload: string): void {
    const [version, topic, ...detail] = payload.split(' ')
    this.#note({ version: version ?? '', topic: topic ?? '', detail: detail.join(' ') })
  }

  #note({ version, topic, detail }: Change): void {
    const key = `${version} ${topic} ${detail}`
    if (this.#seen.has(key)) return
    this.#seen.set(key, Number(version))
    this.changed(topic, detail)
  }

  #pollLater(): void {
    if (this.#isStopped) return
    this.#cancel = this.#deps.schedule(() => {
      void this.#poll().finally(() => this.#pollLater())
    }, SERVER_POLL_MS)
  }

  async #poll(): Promise<void> {
    const rows = await this.#deps.notices.query<Row>(pollQuery, [this.#horizon])
    const [first] = rows ?? []
    if (rows === undefined || first === undefined) return
    const [horizon, at] = [Number(first.horizon), Number(first.at)]
    const gapMs = at - (this.#polledAt ?? at)
    // Another server, such as one from a backup, or a long pause: changes may have been missed.
    if (horizon < this.#horizon || gapMs > RETENTION_MS / 2) this.#loadAll()
    else for (const row of rows) if (isChange(row)) this.#note(row)
    for (const [key, version] of this.#seen) if (version < horizon) this.#seen.delete(key)
    this.#horizon = horizon
    this.#polledAt = at
    await this.#clean(at)
  }

  async #clean(at: number): Promise<void> {
    this.#polls += 1
    if (this.#polls % POLLS_PER_CLEANING !== 0) return
    await this.#deps.notices.query('DELETE FROM change_counter WHERE changed_at < $1', [
      at - RETENTION_MS,
    ])
  }
}
