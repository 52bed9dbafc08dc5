/**
 * Counts `request_count`, `last_used_at` and the requests of each day in memory; `flush` writes
 * them at least once a second and at shutdown (SPECIFICATION.md §4.6). Every authenticated request
 * is a use, but only successful ones are counted (SPECIFICATION.md §2.1).
 */
import { DAY_MS, MINUTE_MS } from '../../schema/clock.ts'
import { OneAtATime } from '../../schema/one-at-a-time.ts'
import type { Store } from '../../schema/storage/store.ts'
import { all, execute, type Param, prepare, transaction } from '../../schema/sql/query.ts'
import { type Step, answerOf } from '../http/control-env.ts'
import { type KeyActivity, NO_KEY } from './key-activity.ts'

/** Maximum delay of the stored counters. */
export const USAGE_FLUSH_INTERVAL_MS = 1_000
/** Minutes whose requests are counted: those of the last hour. */
const RETENTION_MINUTES = 60
/** Days whose requests are shown, this one included. */
const SHOWN_DAYS = 30

/** The uses of one key. */
class Usage {
  /** Successful requests since the last flush. */
  requests = 0
  lastUsedAt = 0
  readonly keyId: number
  /** Requests by minute, those of the last hour that are not stored yet. */
  readonly minutes = new Map<number, number>()
  readonly #unstored: Set<Usage>

  constructor(keyId: number, unstored: Set<Usage>) {
    this.keyId = keyId
    this.#unstored = unstored
  }

  used(now: number): void {
    this.lastUsedAt = now
    const minute = minuteOf(now)
    const requests = this.minutes.get(minute)
    this.minutes.set(minute, (requests ?? 0) + 1)
    if (requests === undefined && this.minutes.size > RETENTION_MINUTES)
      for (const first of this.minutes.keys()) {
        this.minutes.delete(first)
        break
      }
    this.#unstored.add(this)
  }

  /** The response to a request of the key is a success. */
  succeeded(): void {
    this.requests += 1
    this.#unstored.add(this)
  }
}

/** Successful requests of a day, in UTC. */
export interface DayOfKey {
  /** `2026-01-31` */
  readonly date: string
  readonly requests: number
}

export class KeyUsage {
  readonly #store: Store
  readonly #statements: ReturnType<typeof usageStatements>
  readonly #now: () => number
  /** The day at which older ones were removed. */
  #prunedAt = -1
  /** The minute at which older ones were removed. */
  #forgottenAt = -1
  /** Bounded by the number of keys. */
  readonly #keys = new Map<number, Usage>()
  /** Keys that the next flush writes: few of many are used within a second. */
  readonly #unstored = new Set<Usage>()
  /** Keys with requests in a minute that is not stored yet. */
  readonly #counting = new Set<Usage>()
  readonly #flushes = new OneAtATime(() => this.#storeUses())

  /** @param now milliseconds UTC. */
  constructor(store: Store, now: () => number) {
    this.#store = store
    this.#now = now
    this.#statements = usageStatements(store)
  }

  /**
   * Requests of the last sixty minutes, on all instances; of the minute that goes on those of this
   * one.
   */
  async ofLastHour(keyId: number): Promise<number> {
    const first = minuteOf(this.#now()) - RETENTION_MINUTES + 1
    const query = this.#store.db
      .selectFrom('application_key_minute')
      .select((row) => row.fn.sum<number>('requests').as('requests'))
      .where('application_key_id', '=', keyId)
      .where('minute', '>=', first)
    const [stored] = await all(this.#store, query)
    let requests = stored?.requests ?? 0
    for (const [minute, unstored] of this.#keys.get(keyId)?.minutes ?? [])
      if (minute >= first) requests += unstored
    return requests
  }

  /** Notes a use of the key. */
  seen(keyId: number, now: number): Pick<Usage, 'succeeded'> {
    const usage = this.#keys.get(keyId) ?? this.#add(keyId)
    usage.used(now)
    return usage
  }

  #add(keyId: number): Usage {
    const usage = new Usage(keyId, this.#unstored)
    this.#keys.set(keyId, usage)
    return usage
  }

  /** All or nothing: after a failed write, the counters wait for the next flush. */
  flush(): Promise<void> {
    return this.#flushes.request()
  }

  async #storeUses(): Promise<void> {
    for (const usage of this.#unstored) this.#counting.add(usage)
    await this.#storeMinutes()
    if (this.#unstored.size === 0) return
    // Uses go on while they are written. In the same order on each instance, so that none waits for
    // another in a circle.
    const uses = [...this.#unstored]
      .map((usage) => ({ usage, requests: usage.requests, lastUsedAt: usage.lastUsedAt }))
      .toSorted((one, other) => one.usage.keyId - other.usage.keyId)
    this.#unstored.clear()
    try {
      await transaction(this.#store, async () => {
        for (const { usage, requests, lastUsedAt } of uses) {
          const [id, day] = [usage.keyId, dayOf(lastUsedAt)]
          await this.#statements.use.run({ id, requests, lastUsedAt })
          if (requests > 0) await this.#statements.day.run({ id, day, requests })
          if (day !== this.#prunedAt) await this.#prune(day)
        }
      })
    } catch (error) {
      for (const { usage } of uses) this.#unstored.add(usage)
      throw error
    }
    for (const { usage, requests } of uses) usage.requests -= requests
  }

  /** A minute is written once, when it is over: in the same order on each instance. */
  async #storeMinutes(): Promise<void> {
    const present = minuteOf(this.#now())
    const over = [...this.#counting].flatMap((usage) =>
      [...usage.minutes].flatMap(([minute, requests]) =>
        minute < present ? [{ usage, minute, requests }] : [],
      ),
    )
    if (over.length === 0) return
    over.sort((one, other) => one.usage.keyId - other.usage.keyId)
    await transaction(this.#store, async () => {
      for (const { usage, minute, requests } of over)
        await this.#statements.minute.run({ id: usage.keyId, minute, requests })
      if (this.#forgottenAt === present) return
      const old = this.#store.db.deleteFrom('application_key_minute')
      await execute(this.#store, old.where('minute', '<=', present - RETENTION_MINUTES))
    })
    this.#forgottenAt = present
    for (const { usage, minute } of over) {
      usage.minutes.delete(minute)
      if (usage.minutes.size === 0) this.#counting.delete(usage)
    }
  }

  /** The last days up to `now`, oldest first; those without a request too. */
  async daysOf(keyId: number, now: number): Promise<readonly DayOfKey[]> {
    const today = dayOf(now)
    const query = this.#store.db
      .selectFrom('application_key_day')
      .select(['day', 'requests'])
      .where('application_key_id', '=', keyId)
      .where('day', '>', today - SHOWN_DAYS)
    const counted = new Map(
      (await all(this.#store, query)).map(({ day, requests }) => [day, requests]),
    )
    return Array.from({ length: SHOWN_DAYS }, (_, index) => {
      const day = today - SHOWN_DAYS + 1 + index
      return { date: dateOf(day), requests: counted.get(day) ?? 0 }
    })
  }

  /**
   * Deletes days that are not shown, also days to come, which a clock that was ahead has left. A
   * key has one row for each day that is shown.
   */
  async #prune(today: number): Promise<void> {
    const others = this.#store.db
      .deleteFrom('application_key_day')
      .where((row) => row.or([row('day', '<=', today - SHOWN_DAYS), row('day', '>', today)]))
    await execute(this.#store, others)
    this.#prunedAt = today
  }
}

const minuteOf = (now: number): number => Math.floor(now / MINUTE_MS)
const dayOf = (now: number): number => Math.floor(now / DAY_MS)
const dateOf = (day: number): string => new Date(day * DAY_MS).toISOString().slice(0, 10)

const usageStatements = (store: Store) => ({
  use: prepare(store, (db, param: Param<{ id: number; requests: number; lastUsedAt: number }>) =>
    db
      .updateTable('application_key')
      .set((key) => ({
        request_count: key('request_count', '+', param('requests')),
        last_used_at: param('lastUsedAt'),
      }))
      .where('id', '=', param('id')),
  ),
  day: prepare(store, (db, param: Param<{ id: number; day: number; requests: number }>) =>
    db
      .insertInto('application_key_day')
      .values({
        application_key_id: param('id'),
        day: param('day'),
        requests: param('requests'),
      })
      .onConflict((conflict) =>
        conflict.columns(['application_key_id', 'day']).doUpdateSet((row) => ({
          requests: row('application_key_day.requests', '+', row.ref('excluded.requests')),
        })),
      ),
  ),
  minute: prepare(store, (db, param: Param<{ id: number; minute: number; requests: number }>) =>
    db
      .insertInto('application_key_minute')
      .values({
        application_key_id: param('id'),
        minute: param('minute'),
        requests: param('requests'),
      })
      .onConflict((conflict) =>
        conflict.columns(['application_key_id', 'minute']).doUpdateSet((row) => ({
          requests: row('application_key_minute.requests', '+', row.ref('excluded.requests')),
        })),
      ),
  ),
})

/**
 * Has each response counted for the key that was presented, also where the key is not allowed from
 * that address. Before what may refuse the request. What another instance asks for a client was
 * counted there.
 */
export function noteActivity(activity: KeyActivity): Step {
  return (c) => {
    if (c.get('instanceRequest') !== undefined) return
    const presented = c.get('presented')
    const principal = 'principal' in presented ? presented.principal : undefined
    const keyId = principal?.kind === 'key' ? principal.keyId : NO_KEY
    answerOf(c).noted(activity.of(keyId), c.get('clientAddress'))
  }
}
