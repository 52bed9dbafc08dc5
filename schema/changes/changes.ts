/** Memory follows the database: what depends on a table is loaded again when another process has changed that table. */
import type { Cancel, Schedule } from '../clock.ts'
import type { Log } from '../contracts/log.ts'
import type { LocalStore } from '../open.ts'
import type { ServerNotices } from '../postgres/notices.ts'

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

// ---- an SQLite file ----------------------------------------------------------------------

/** Commits of other processes, such as a command, to an SQLite file. It does not tell what they have changed. */
const FILE_POLL_MS = 250

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
    }, FILE_POLL_MS)
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

// ---- a PostgreSQL database ---------------------------------------------------------------

// Triggers tell its changes with NOTIFY and write them to `change_counter`, which is read every second, should a notice
// be lost.

export interface ServerChangesDeps extends FollowersDeps {
  readonly notices: ServerNotices
  readonly schedule: Schedule
  readonly random: () => number
}

const CHANNEL = 'tollgate_changes'
const SERVER_POLL_MS = 1_000
/** Rows are kept for so long. Who has not polled for half of it loads everything. */
const KEPT_MS = 600_000
const POLLS_PER_CLEANING = 300
/** All nodes hear of a gap at once, and read everything: each begins at another moment within this time. */
const SPREAD_MS = 2_000

/**
 * `horizon` is the oldest transaction that may still be under way: all before it are seen. Numbers of transactions
 * fit a float, and a bigint arrives as text.
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

export class ServerChanges implements Changes {
  readonly #deps: ServerChangesDeps
  readonly #followers: Followers
  #cancel: Cancel = () => undefined
  #cancelNotices: readonly Cancel[] = []
  #horizon = 0
  #polledAt: number | undefined
  /** Changes since the horizon that were told, with their versions. */
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
    this.#deps = deps
    this.#followers = new Followers(deps)
  }

  follow(follower: Follower): Cancel {
    return this.#followers.follow(follower)
  }

  async start(): Promise<void> {
    const { notices } = this.#deps
    this.#cancelNotices = [
      notices.on(CHANNEL, (payload) => this.#told(payload)),
      notices.onGap(() => this.#missed()),
    ]
    await this.#poll()
    this.#pollLater()
  }

  stop(): Promise<void> {
    this.#isStopped = true
    this.#cancel()
    for (const cancel of this.#cancelNotices) cancel()
    this.#followers.stop()
    return Promise.resolve()
  }

  /** What the counter has kept is read by its details first. */
  #missed(): void {
    void this.#poll()
    this.#loadAll()
  }

  #loadAll(): void {
    this.#followers.changedAll(this.#deps.random() * SPREAD_MS)
  }

  #told(payload: string): void {
    const [version, topic, ...detail] = payload.split(' ')
    this.#changed({ version: version ?? '', topic: topic ?? '', detail: detail.join(' ') })
  }

  #changed({ version, topic, detail }: Change): void {
    const key = `${version} ${topic} ${detail}`
    if (this.#seen.has(key)) return
    this.#seen.set(key, Number(version))
    this.#followers.changed(topic, detail)
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
    // Another server, such as one from a backup, or a long pause: what was missed is unknown.
    if (horizon < this.#horizon || gapMs > KEPT_MS / 2) this.#loadAll()
    else for (const row of rows) if (isChange(row)) this.#changed(row)
    for (const [key, version] of this.#seen) if (version < horizon) this.#seen.delete(key)
    this.#horizon = horizon
    this.#polledAt = at
    await this.#clean(at)
  }

  async #clean(at: number): Promise<void> {
    this.#polls += 1
    if (this.#polls % POLLS_PER_CLEANING !== 0) return
    await this.#deps.notices.query('DELETE FROM change_counter WHERE changed_at < $1', [
      at - KEPT_MS,
    ])
  }
}
