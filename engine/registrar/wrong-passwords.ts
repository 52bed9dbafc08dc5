/**
 * Counts wrong passwords of phones by hour, extension and source. The guard acts at once and
 * forgets; these counts are for later reports. Names that no extension has are not stored.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { HOUR_MS, type Cancel, type Schedule } from '../../schema/clock.ts'
import type { Log } from '../../schema/contracts/log.ts'
import { sourceKey } from '../../schema/net/ip-address.ts'
import { OneAtATime } from '../../schema/one-at-a-time.ts'
import type { Store } from '../../schema/storage/store.ts'
import { execute, lockedTransaction } from '../../schema/sql/query.ts'
import type { WrongPasswordTable } from '../../schema/tables/changes.ts'

export interface WrongPassword {
  readonly address: string
  readonly tenantId: number
  /** Undefined: there is no such extension. */
  readonly extensionId: number | undefined
}

interface WrongPasswordsDeps {
  readonly store: Store
  /** Milliseconds UTC. */
  readonly wallNow: () => number
  readonly schedule: Schedule
  readonly log: Log
}

const FLUSH_MS = 2_000
/** Anomalies are found by comparison with this time. */
const KEPT_HOURS = 15 * 24
/** Extensions with their sources, in an hour; beyond, sources are counted together. */
const MAX_PAIRS = 2_000
/** While the database is unreachable, further ones are not counted. */
const MAX_WAITING = 10_000
/** Stored together: each alone would be synced to the disk while calls wait. */
const TOGETHER = 100
/** Stands for further sources, when there are too many. */
const OTHERS = ''

type Row = WrongPasswordTable

export class WrongPasswords {
  readonly #deps: WrongPasswordsDeps
  readonly #add: ReturnType<typeof adding>
  readonly #flushes = new OneAtATime(() => this.#store())
  /** Counts that are not stored yet, by hour, extension and source. */
  #waiting = new Map<string, Row>()
  /** Pairs of account and source that failed in this hour. */
  readonly #pairs = new Set<string>()
  #hour = 0
  #forgottenAt = 0
  #cancel: Cancel | undefined

  constructor(deps: WrongPasswordsDeps) {
    this.#deps = deps
    this.#add = adding(deps.store)
  }

  add({ address, tenantId, extensionId = 0 }: WrongPassword): void {
    const now = this.#deps.wallNow()
    const hour = Math.floor(now / HOUR_MS)
    if (hour !== this.#hour) this.#pairs.clear()
    this.#hour = hour
    const source = this.#sourceFor(`${tenantId} ${extensionId}`, sourceKey(address))
    const name = `${hour} ${tenantId} ${extensionId} ${source}`
    const known = this.#waiting.get(name)
    if (known !== undefined) {
      known.failures += 1
      known.last_at = now
    } else if (this.#waiting.size < MAX_WAITING) {
      const counted = { failures: 1, first_at: now, last_at: now }
      this.#waiting.set(name, {
        hour,
        tenant_id: tenantId,
        extension_id: extensionId,
        source,
        ...counted,
      })
    }
    this.#soon()
  }

  /** Stores what waits. */
  async stop(): Promise<void> {
    this.#cancel?.()
    this.#cancel = undefined
    await this.#flushes.request()
  }

  #sourceFor(extension: string, source: string): string {
    const pair = `${extension} ${source}`
    if (this.#pairs.has(pair)) return source
    if (this.#pairs.size >= MAX_PAIRS) return OTHERS
    this.#pairs.add(pair)
    return source
  }

  #soon(): void {
    this.#cancel ??= this.#deps.schedule(() => {
      this.#cancel = undefined
      void this.#flushes.request().then((isStored) => isStored || this.#soon())
    }, FLUSH_MS)
  }

  /** Never rejects. */
  async #store(): Promise<boolean> {
    const rows = this.#waiting
    this.#waiting = new Map()
    try {
      await this.#addAll(rows)
      await this.#forgetOld()
      return true
    } catch (error) {
      for (const [name, row] of rows) this.#wait(name, row)
      this.#deps.log('warn', 'counts of wrong passwords cannot be stored yet', {
        error: String(error),
      })
      return false
    }
  }

  /** Removes from `rows` what is stored. */
  async #addAll(rows: Map<string, Row>): Promise<void> {
    const waiting = [...rows]
    for (let from = 0; from < waiting.length; from += TOGETHER) {
      const some = waiting.slice(from, from + TOGETHER)
      await lockedTransaction(this.#deps.store, () =>
        this.#add(some.map(([, row]) => ({ ...row }))),
      )
      for (const [name] of some) rows.delete(name)
      // On a file all statements are of one turn of the event loop.
      await nextTurn()
    }
  }

  #wait(name: string, { failures, first_at, ...row }: Row): void {
    const later = this.#waiting.get(name)
    const last_at = later?.last_at ?? row.last_at
    const all = failures + (later?.failures ?? 0)
    this.#waiting.set(name, { ...row, first_at, last_at, failures: all })
  }

  async #forgetOld(): Promise<void> {
    const { store, wallNow } = this.#deps
    const now = wallNow()
    if (now - this.#forgottenAt < HOUR_MS) return
    this.#forgottenAt = now
    const oldest = Math.floor(now / HOUR_MS) - KEPT_HOURS
    await execute(store, store.db.deleteFrom('wrong_password').where('hour', '<', oldest))
  }
}

const columns = [
  'hour',
  'tenant_id',
  'extension_id',
  'source',
  'failures',
  'first_at',
  'last_at',
] as const satisfies readonly (keyof Row)[]

/** Counts of a tenant that is gone are left out. */
const adding = ({ statements }: Store) =>
  statements.prepareRows({
    table: 'wrong_password',
    columns,
    sql: `INSERT INTO wrong_password (${columns.join()}) SELECT ${columns.join()} FROM given
      WHERE tenant_id IN (SELECT id FROM tenant)
      ON CONFLICT (hour, tenant_id, extension_id, source) DO UPDATE
      SET failures = wrong_password.failures + excluded.failures, last_at = excluded.last_at`,
  })
