/**
 * Changes of a PostgreSQL database: its triggers tell them with NOTIFY and write them to
 * `change_counter`, which is read every second, should a notice be lost.
 */
import type { Cancel, Schedule } from '../clock.ts'
import type { ServerNotices } from './server-notices.ts'
import type { FollowersDeps } from './follower-state.ts'
import { Followers } from './followers.ts'
import type { Changes } from './changes.ts'

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
 * A gap concerns all instances at once, and each reads everything: each starts at a random moment
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
