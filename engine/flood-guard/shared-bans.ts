/**
 * Bans that hold on all instances of a database. An instance decides on those in its memory, which
 * follows the table. Those of operators are stored before they are confirmed; those that an
 * instance decides on hold there at once, and spread at a bounded rate: a stranger may write many
 * addresses on its packets.
 */
import type { Details } from '../../schema/changes/changes.ts'
import type { Cancel, Schedule } from '../../schema/clock.ts'
import type { Log } from '../../schema/contracts/log.ts'
import { OneAtATime } from '../../schema/one-at-a-time.ts'
import type { Store } from '../../schema/storage/store.ts'
import type { StoredBan } from './bans.ts'
import { sourceOf, type BanKind, type DetectedBan, type FloodGuard } from './flood-guard.ts'
import { type Bucket, fullBucket, takeFrom } from './token-buckets.ts'

interface Notices {
  on(channel: string, handler: (payload: string) => void): () => void
  notify(channel: string, payload: string): void
}

export interface SharedBansDeps {
  readonly store: Pick<Store, 'statements'>
  readonly notices: Notices
  readonly guard: FloodGuard
  /** Milliseconds by the clock of the guard. */
  readonly now: () => number
  readonly schedule: Schedule
  readonly log: Log
}

/** A source that is not banned any more: what counts against it is forgotten, too. */
const LIFTED = 'tollgate_ban_lifted'
/** A source that operators do not ban any more. */
const ENDED = 'tollgate_operator_ban_ended'
/** Bans of this time are one statement. */
const GROUP_MS = 100
const RETRY_MS = 1_000
/**
 * Bans of each kind that this instance spreads: so many at once, and so many a second. The rest
 * hold here alone.
 */
const BURST = 100
const SPREAD = { packetsPerSecond: 10, burst: BURST }
const CLEANING_MS = 60_000
/**
 * Bans of each kind that all instances store together, as many as one has in memory; the oldest
 * give way.
 */
const MAX_STORED = 10_000
/** The payload of the table's triggers for added bans. */
const ADDED = 'added'
/** Bans that are read at once. */
const PAGE = 1_000
/** The table has fewer, between two cleanings. */
const MAX_PAGES = 100
const none: ReadonlySet<string> = new Set()
const kinds = ['operator', 'proven', 'claimed'] as const satisfies readonly BanKind[]

export class SharedBans {
  readonly #deps: SharedBansDeps
  readonly #statements: ReturnType<typeof prepare>
  readonly #work = new OneAtATime(() => this.#storeDetected())
  /** Bans of this instance that are not stored yet, by kind and source. */
  readonly #detected = new Map<string, DetectedBan>()
  /** One for each kind: bans of forged datagrams take nothing from proven ones. */
  readonly #allowances: Readonly<Record<BanKind, Bucket>>
  /** All bans of transactions before this one were read. */
  #horizon = 0
  #isFailing = false
  #cancelGroup: Cancel | undefined
  #cancelCleaning: Cancel = () => undefined
  readonly #cancelNotices: readonly Cancel[]

  constructor(deps: SharedBansDeps) {
    this.#deps = deps
    this.#statements = prepare(deps.store)
    const full = (): Bucket => fullBucket(SPREAD, deps.now())
    this.#allowances = { operator: full(), proven: full(), claimed: full() }
    this.#cancelNotices = [
      deps.notices.on(LIFTED, (source) => this.#lift(source)),
      deps.notices.on(ENDED, (source) => deps.guard.endOperatorBan(source)),
    ]
    this.#cleanLater()
    deps.guard.onBan((ban) => this.#spread(ban))
  }

  /**
   * By an operator. Resolves when it is stored; it holds here then, and on all instances within a
   * second.
   */
  async ban(address: string, durationMs: number): Promise<void> {
    const source = sourceOf(address)
    await this.#store([{ kind: 'operator', source, reason: 'operator', durationMs }])
    this.#deps.guard.ban(address, durationMs)
    // A ban ends a moment later here than in the table, whose rows would not show that it is
    // stored.
    this.#deps.guard.noteStored('operator', source)
  }

  /**
   * Takes an address, or a source as it is listed. False: no instance had banned it, as far as is
   * known.
   */
  async unban(given: string): Promise<boolean> {
    const source = sourceOf(given)
    const stored = await this.#statements.lift.all([source])
    const wasHere = this.#lift(source)
    this.#deps.notices.notify(LIFTED, source)
    return wasHere || stored.length > 0
  }

  /** Takes back what `ban` did, and no ban that an instance has found. */
  async endOperatorBan(given: string): Promise<void> {
    const source = sourceOf(given)
    await this.#statements.liftOperator.run([source])
    this.#deps.guard.endOperatorBan(source)
    this.#deps.notices.notify(ENDED, source)
  }

  /**
   * Takes over the stored bans: all, or those that have changed, by a payload of the triggers of
   * the table.
   */
  async reload(changes: Details = 'all'): Promise<void> {
    if (changes === 'all') return this.#readFrom(0)
    if (changes.has(ADDED)) await this.#readFrom(this.#horizon)
    const lifted = new Set([...changes].filter((detail) => detail !== ADDED))
    if (lifted.size === 0) return undefined
    const left = await this.#statements.of.all([JSON.stringify([...lifted])])
    return this.#deps.guard.takeStored(left.map(this.#toBan), lifted)
  }

  /** Reads what transactions from this one on have stored. From the first one on that is all. */
  async #readFrom(version: number): Promise<void> {
    // First: what commits meanwhile is read again.
    const begun = await this.#statements.horizon.get([])
    const rows = new Map<string, Row>()
    let after: readonly [number, string, string] = [version, '', '']
    for (let page = 0; page < MAX_PAGES; page += 1) {
      const some = await this.#statements.since.all([...after, PAGE])
      for (const row of some) rows.set(`${row.kind} ${row.source}`, row)
      const last = some.at(-1)
      if (last === undefined || some.length < PAGE) break
      after = [last.version, last.kind, last.source]
    }
    const sources = version === 0 ? undefined : none
    this.#deps.guard.takeStored([...rows.values()].map(this.#toBan), sources)
    if (begun !== undefined) this.#horizon = begun.horizon
  }

  readonly #toBan = (row: Row): StoredBan & { readonly kind: BanKind } => {
    const { source, kind, reason, age_ms: ageMs, left_ms: leftMs } = row
    const now = this.#deps.now()
    return { source, kind, reason, since: now - ageMs, until: now + leftMs }
  }

  /** Removes bans that are over, and what is too many. */
  async clean(): Promise<void> {
    for (const kind of kinds) await this.#statements.clean.run([kind, MAX_STORED])
  }

  stop(): void {
    for (const cancel of this.#cancelNotices) cancel()
    this.#cancelCleaning()
    this.#cancelGroup?.()
  }

  #cleanLater(): void {
    this.#cancelCleaning = this.#deps.schedule(() => {
      this.#cleanLater()
      // Bans that are not removed now are removed a minute later.
      this.clean().catch(() => undefined)
    }, CLEANING_MS)
  }

  #lift(source: string): boolean {
    for (const [key, ban] of this.#detected) if (ban.source === source) this.#detected.delete(key)
    return this.#deps.guard.unban(source)
  }

  #spread(ban: DetectedBan): void {
    if (!takeFrom(this.#allowances[ban.kind], SPREAD, this.#deps.now())) return
    this.#detected.set(`${ban.kind} ${ban.source}`, ban)
    this.#soon(GROUP_MS)
  }

  #soon(waitMs: number): void {
    this.#cancelGroup ??= this.#deps.schedule(() => {
      this.#cancelGroup = undefined
      void this.#work.request()
    }, waitMs)
  }

  /** Never rejects. While the database is unreachable, as many wait as may spread at once. */
  async #storeDetected(): Promise<void> {
    const found = [...this.#detected].slice(0, BURST)
    if (found.length === 0) return
    for (const [key] of found) this.#detected.delete(key)
    try {
      await this.#store(found.map(([, ban]) => ban))
      for (const [key, { kind, source }] of found)
        if (!this.#detected.has(key)) this.#deps.guard.noteStored(kind, source)
      this.#isFailing = false
    } catch (error) {
      if (!this.#isFailing)
        this.#deps.log('warn', 'bans cannot be shared with other instances yet', { error })
      this.#isFailing = true
      for (const [key, ban] of found)
        if (this.#waiting(ban.kind) < BURST) this.#detected.set(key, ban)
    }
    if (this.#detected.size > 0) this.#soon(RETRY_MS)
  }

  #waiting(kind: BanKind): number {
    return [...this.#detected.values()].filter((ban) => ban.kind === kind).length
  }

  async #store(bans: readonly DetectedBan[]): Promise<void> {
    const rows = bans.map(({ durationMs: duration, ...ban }) => ({ ...ban, duration }))
    await this.#statements.add.run([JSON.stringify(rows)])
  }
}

interface Row {
  readonly source: string
  readonly kind: BanKind
  readonly reason: StoredBan['reason']
  readonly version: number
  readonly age_ms: number
  readonly left_ms: number
}

/** By the clock of the server: the clocks of instances differ. */
const NOW = 'CAST(floor(extract(epoch FROM clock_timestamp()) * 1000) AS bigint)'

const columns = `source, kind, reason, version, ${NOW} - since AS age_ms, until - ${NOW} AS left_ms`

function prepare({ statements }: Pick<Store, 'statements'>) {
  return {
    add: statements.prepare(
      `INSERT INTO source_ban (source, kind, reason, since, until)
       SELECT t.source, t.kind, t.reason, ${NOW}, ${NOW} + t.duration
         FROM json_to_recordset(CAST($1 AS json))
           AS t(source text, kind text, reason text, duration bigint)
       ON CONFLICT (kind, source) DO UPDATE
         SET reason = excluded.reason, since = excluded.since, until = excluded.until,
           version = excluded.version`,
    ),
    lift: statements.prepare<{ readonly kind: string }>(
      'DELETE FROM source_ban WHERE source = $1 RETURNING kind',
    ),
    liftOperator: statements.prepare(
      `DELETE FROM source_ban WHERE source = $1 AND kind = 'operator'`,
    ),
    horizon: statements.prepare<{ readonly horizon: number }>(
      'SELECT CAST(CAST(pg_snapshot_xmin(pg_current_snapshot()) AS text) AS bigint) AS horizon',
    ),
    since: statements.prepare<Row>(
      `SELECT ${columns} FROM source_ban
       WHERE (version, kind, source) > (CAST($1 AS bigint), $2, $3) AND until > ${NOW}
       ORDER BY version, kind, source LIMIT $4`,
    ),
    of: statements.prepare<Row>(
      `SELECT ${columns} FROM source_ban
       WHERE until > ${NOW} AND kind IN ('operator', 'proven', 'claimed')
         AND source IN (SELECT value FROM json_array_elements_text(CAST($1 AS json)))`,
    ),
    clean: statements.prepare(
      `DELETE FROM source_ban WHERE kind = $1 AND (until <= ${NOW} OR since <
         (SELECT since FROM source_ban WHERE kind = $1 ORDER BY since DESC OFFSET $2 LIMIT 1))`,
    ),
  }
}
