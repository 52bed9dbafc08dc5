import { setImmediate as nextTurn } from 'node:timers/promises'
import { type RawBuilder, sql } from 'kysely'
import { HOUR_MS } from '../../schema/clock.ts'
import { OneAtATime } from '../../schema/one-at-a-time.ts'
import type { Store } from '../../schema/storage/store.ts'
import { all, execute, first, type Param, prepare, transaction } from '../../schema/sql/query.ts'
import type { ApiHourTable, KeyAddressTable } from '../../schema/tables/changes.ts'

/** Addresses of a key in the database: the usual ones, and the others that were seen last. */
const MAX_ADDRESSES = 200

/**
 * The usual ones: a flood of fresh addresses comes neither first nor, without requests that
 * succeed, most.
 */
const FIRST_SEEN = 40
const MOST_USED = 60

const RETENTION_HOURS = 31 * 24

/**
 * Names that are counted separately between two flushes, per key; further names are counted as
 * `others`.
 */
const MAX_NAMES = 100
const OTHERS = 'others'

/** Rows that wait while the database is unavailable; further ones are not counted. */
const MAX_WAITING = 20_000
const PRUNE_MS = 60_000

/** Rows of one DELETE. */
const BATCH = 1_000

/** Stands for the id of the key in requests without a key. */
export const NO_KEY = 0

interface Uses {
  requests: number
  denied: number
  firstAt: number
  lastAt: number
}

/** Counts each response. */
export interface Activity {
  /** @param refusal the code of the error, where there is one. */
  ended(status: number, route: string, address: string, refusal: string | undefined): void
}

class ActivityOfKey implements Activity {
  readonly keyId: number
  addresses = new Map<string, Uses>()
  /** The counts are keyed by route, then by outcome. */
  routes = new Map<string, Map<string, Uses>>()
  #outcomes = 0
  readonly #active: Set<ActivityOfKey>
  readonly #now: () => number

  constructor(keyId: number, active: Set<ActivityOfKey>, now: () => number) {
    this.keyId = keyId
    this.#active = active
    this.#now = now
  }

  ended(status: number, route: string, address: string, refusal: string | undefined): void {
    const isFailure = status >= 400
    if (this.keyId === NO_KEY && !isFailure) return
    const now = this.#now()
    this.#active.add(this)
    const isDenied = status === 401 || status === 403 || status === 429
    if (this.keyId !== NO_KEY) count(this.#usesFrom(address), isDenied, now)
    count(this.#usesOf(route, isFailure ? (refusal ?? String(status)) : ''), isDenied, now)
  }

  /** Begins to count anew. */
  clear(): void {
    this.addresses = new Map()
    this.routes = new Map()
    this.#outcomes = 0
  }

  #usesFrom(address: string): Uses {
    const known = this.addresses.get(address)
    if (known !== undefined) return known
    const name = this.addresses.size < MAX_NAMES ? address : OTHERS
    return this.addresses.get(name) ?? added(this.addresses, name)
  }

  #usesOf(route: string, outcome: string): Uses {
    const known = this.routes.get(route)?.get(outcome)
    if (known !== undefined) return known
    const name = this.#outcomes < MAX_NAMES ? route : OTHERS
    const outcomes = this.routes.get(name) ?? new Map<string, Uses>()
    this.routes.set(name, outcomes)
    this.#outcomes += 1
    return outcomes.get(outcome) ?? added(outcomes, outcome)
  }
}

function added(uses: Map<string, Uses>, name: string): Uses {
  const made = { requests: 0, denied: 0, firstAt: 0, lastAt: 0 }
  uses.set(name, made)
  return made
}

function count(uses: Uses, isDenied: boolean, now: number): void {
  if (uses.requests === 0) uses.firstAt = now
  uses.requests += 1
  if (isDenied) uses.denied += 1
  uses.lastAt = now
}

/**
 * Where each key is used from, on which routes and with which outcome: counted in memory by the
 * response, written once a second. A request costs a few look-ups, and the counters are bounded per
 * key. Several instances add to the same rows.
 */
export class KeyActivity {
  readonly #store: Store
  readonly #now: () => number
  readonly #statements: ReturnType<typeof activityStatements>
  /** Bounded by the number of keys. */
  readonly #keys = new Map<number, ActivityOfKey>()
  readonly #active = new Set<ActivityOfKey>()
  /** Counts that are not written yet, by the names of their rows. */
  readonly #addresses = new Map<string, KeyAddressTable>()
  readonly #hours = new Map<string, ApiHourTable>()
  /** Keys that may have too many addresses. */
  readonly #grown = new Set<number>()
  #prunedAt = 0
  readonly #flushes = new OneAtATime(() => this.#flush())

  /** @param now milliseconds UTC. */
  constructor(store: Store, now: () => number) {
    this.#store = store
    this.#now = now
    this.#statements = activityStatements(store)
  }

  /** @param keyId of the key that was presented, `NO_KEY` for none. */
  of(keyId: number): Activity {
    const known = this.#keys.get(keyId)
    if (known !== undefined) return known
    const made = new ActivityOfKey(keyId, this.#active, this.#now)
    this.#keys.set(keyId, made)
    return made
  }

  /** All or nothing: after a failed write the counts wait for the next one. */
  flush(): Promise<void> {
    return this.#flushes.request()
  }

  async #flush(): Promise<void> {
    this.#takeCounts()
    if (this.#hours.size > 0) {
      await this.#write()
      for (const { application_key_id: id } of this.#addresses.values()) this.#grown.add(id)
      this.#addresses.clear()
      this.#hours.clear()
    }
    const now = this.#now()
    if (Math.abs(now - this.#prunedAt) < PRUNE_MS) return
    this.#prunedAt = now
    await this.#forgetAddresses()
    await this.#forgetHours(now)
  }

  #takeCounts(): void {
    for (const uses of this.#active) {
      const { keyId: application_key_id, addresses, routes } = uses
      for (const [address, used] of addresses) {
        const row = { application_key_id, address, ...columnsOf(used), denied: used.denied }
        const waiting = this.#waiting(this.#addresses, `${application_key_id} ${address}`, row)
        if (waiting !== undefined) waiting.denied += used.denied
      }
      for (const [route, outcomes] of routes)
        for (const [outcome, used] of outcomes) {
          const hour = Math.floor(used.lastAt / HOUR_MS)
          const row = { hour, application_key_id, route, outcome, ...columnsOf(used) }
          this.#waiting(this.#hours, `${hour} ${application_key_id} ${route} ${outcome}`, row)
        }
      uses.clear()
    }
    this.#active.clear()
  }

  /** Adds to the row that waits already, and returns that. */
  #waiting<R extends { requests: number; first_at: number; last_at: number }>(
    rows: Map<string, R>,
    name: string,
    row: R,
  ): R | undefined {
    const known = rows.get(name)
    if (known === undefined) {
      if (rows.size < MAX_WAITING) rows.set(name, row)
      return undefined
    }
    known.requests += row.requests
    known.first_at = Math.min(known.first_at, row.first_at)
    known.last_at = Math.max(known.last_at, row.last_at)
    return known
  }

  /** The order is the same on each instance, so that none waits for another in a circle. */
  async #write(): Promise<void> {
    const ids = new Set([...this.#addresses.values()].map((row) => row.application_key_id))
    await transaction(this.#store, async () => {
      const known = await this.#existing([...ids])
      for (const [, row] of inOrder(this.#addresses))
        if (known.has(row.application_key_id)) await this.#statements.address.run(row)
      for (const [, row] of inOrder(this.#hours)) await this.#statements.hour.run(row)
    })
  }

  /** A key may have been removed meanwhile. */
  async #existing(ids: readonly number[]): Promise<ReadonlySet<number>> {
    if (ids.length === 0) return new Set()
    const query = this.#store.db.selectFrom('application_key').select('id').where('id', 'in', ids)
    return new Set((await all(this.#store, query)).map(({ id }) => id))
  }

  async #forgetAddresses(): Promise<void> {
    const { db } = this.#store
    for (const id of this.#grown) {
      this.#grown.delete(id)
      const usual = await this.#usualAddresses(id)
      const beyond = db
        .selectFrom('key_address')
        .select('address')
        .where('application_key_id', '=', id)
        .where('address', 'not in', usual)
        .orderBy('last_at', 'desc')
        .limit(BATCH)
        .offset(MAX_ADDRESSES - usual.length)
      const rows = db.deleteFrom('key_address').where('application_key_id', '=', id)
      // A network may have more addresses than one statement removes in a minute.
      while ((await execute(this.#store, rows.where('address', 'in', beyond))) === BATCH)
        await nextTurn()
    }
  }

  async #usualAddresses(keyId: number): Promise<readonly string[]> {
    const known = this.#store.db
      .selectFrom('key_address')
      .select('address')
      .where('application_key_id', '=', keyId)
    const first = known.orderBy('first_at').orderBy('address').limit(FIRST_SEEN)
    const most = known.orderBy(accepted, 'desc').orderBy('first_at').limit(MOST_USED)
    const rows = [...(await all(this.#store, first)), ...(await all(this.#store, most))]
    return [...new Set(rows.map(({ address }) => address))]
  }

  /** One hour at a time: SIP shares the thread. */
  async #forgetHours(now: number): Promise<void> {
    const { db } = this.#store
    const oldest = db.selectFrom('api_hour').select('hour').orderBy('hour').limit(1)
    const hour = (await first(this.#store, oldest))?.hour
    if (hour === undefined || hour > Math.floor(now / HOUR_MS) - RETENTION_HOURS) return
    await execute(this.#store, db.deleteFrom('api_hour').where('hour', '=', hour))
  }
}

/** Refused requests make no address usual. */
const accepted = sql<number>`requests - denied`

const columnsOf = ({ requests, firstAt, lastAt }: Uses) => ({
  requests,
  first_at: firstAt,
  last_at: lastAt,
})

const inOrder = <R>(rows: ReadonlyMap<string, R>) =>
  [...rows].toSorted(([one], [other]) => (one < other ? -1 : 1))

/** The earlier or the later time, written out: SQLite calls it `min`, PostgreSQL `least`. */
function chosenTime(column: string, sign: '<' | '>'): RawBuilder<number> {
  const [given, known] = [sql.ref(`excluded.${column.split('.')[1]}`), sql.ref(column)]
  return sql<number>`CASE WHEN ${given} ${sql.raw(sign)} ${known} THEN ${given} ELSE ${known} END`
}

/** Several instances add to the same rows. */
const activityStatements = (store: Store) => ({
  address: prepare(store, (db, param: Param<KeyAddressTable>) =>
    db
      .insertInto('key_address')
      .values({
        application_key_id: param('application_key_id'),
        address: param('address'),
        first_at: param('first_at'),
        last_at: param('last_at'),
        requests: param('requests'),
        denied: param('denied'),
      })
      .onConflict((conflict) =>
        conflict.columns(['application_key_id', 'address']).doUpdateSet((row) => ({
          first_at: chosenTime('key_address.first_at', '<'),
          last_at: chosenTime('key_address.last_at', '>'),
          requests: row('key_address.requests', '+', row.ref('excluded.requests')),
          denied: row('key_address.denied', '+', row.ref('excluded.denied')),
        })),
      ),
  ),
  hour: prepare(store, (db, param: Param<ApiHourTable>) =>
    db
      .insertInto('api_hour')
      .values({
        hour: param('hour'),
        application_key_id: param('application_key_id'),
        route: param('route'),
        outcome: param('outcome'),
        requests: param('requests'),
        first_at: param('first_at'),
        last_at: param('last_at'),
      })
      .onConflict((conflict) =>
        conflict.columns(['hour', 'application_key_id', 'route', 'outcome']).doUpdateSet((row) => ({
          first_at: chosenTime('api_hour.first_at', '<'),
          last_at: chosenTime('api_hour.last_at', '>'),
          requests: row('api_hour.requests', '+', row.ref('excluded.requests')),
        })),
      ),
  ),
})
