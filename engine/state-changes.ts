/**
 * Changes of state of nodes, gateways and registrations with carriers: since when something is
 * down, and why. Written in batches, apart from calls. A change that cannot be stored waits.
 */
import type { Insertable } from 'kysely'
import { HOUR_MS, DAY_MS, type Cancel, type Schedule } from '../schema/clock.ts'
import type { Log } from '../schema/contracts/log.ts'
import { OneAtATime } from '../schema/one-at-a-time.ts'
import type { Store } from '../schema/storage/store.ts'
import { execute, transaction } from '../schema/sql/query.ts'
import type { Dispatcher, NodeChange } from './dispatcher/dispatcher.ts'
import type { StateChangeTable } from '../schema/tables/changes.ts'

export interface StateChangesDeps {
  readonly store: Store
  /** Milliseconds UTC. */
  readonly wallNow: () => number
  readonly schedule: Schedule
  /** Name of this instance. */
  readonly instance: string
  readonly log: Log
}

export interface StateChange {
  readonly kind: StateChangeTable['kind']
  readonly subjectId: number
  readonly tenantId: number | null
  readonly name: string
  readonly from: string
  readonly to: string
  readonly cause: StateChangeTable['cause']
  readonly reason: string
  /** Who acted; absent: no operator. */
  readonly by?: string | undefined
}

const FLUSH_MS = 1_000
/** While the database is away, the oldest are lost. */
const MAX_WAITING = 1_000
/** Rows of one statement. */
const BATCH = 100
/** Kept per subject. */
const MAX_CHANGES_OF_ONE = 1_000
const KEPT_MS = 90 * DAY_MS
const MAX_TEXT = 200

type Row = Insertable<StateChangeTable>

export class StateChanges {
  readonly #deps: StateChangesDeps
  readonly #waiting: Row[] = []
  readonly #flushes = new OneAtATime(() => this.#store())
  #cancel: Cancel | undefined
  #prunedAt = 0

  constructor(deps: StateChangesDeps) {
    this.#deps = deps
  }

  add({ kind, subjectId, tenantId, name, from, to, cause, reason, by }: StateChange): void {
    const { wallNow, instance } = this.#deps
    this.#waiting.push({
      kind,
      subject_id: subjectId,
      tenant_id: tenantId,
      name: name.slice(0, MAX_TEXT),
      from_state: from,
      to_state: to,
      cause,
      reason: reason.slice(0, MAX_TEXT),
      actor: by ?? null,
      observer: instance,
      at: wallNow(),
    })
    if (this.#waiting.length > MAX_WAITING) this.#waiting.shift()
    this.#soon()
  }

  /** Stores what waits. */
  async stop(): Promise<void> {
    this.#cancel?.()
    this.#cancel = undefined
    await this.#flushes.request()
  }

  #soon(): void {
    this.#cancel ??= this.#deps.schedule(() => {
      this.#cancel = undefined
      void this.#flushes.request().then((isStored) => isStored || this.#soon())
    }, FLUSH_MS)
  }

  /** Never rejects. */
  async #store(): Promise<boolean> {
    const { store, log } = this.#deps
    try {
      while (this.#waiting.length > 0) {
        const rows = this.#waiting.slice(0, BATCH)
        await transaction(store, async () => {
          await execute(store, store.db.insertInto('state_change').values(rows))
          for (const subject of subjectsOf(rows)) await this.#prune(subject)
        })
        // Those that were dropped meanwhile are not there any more.
        for (const row of rows) if (this.#waiting[0] === row) this.#waiting.shift()
      }
      await this.#forgetOld()
      return true
    } catch (error) {
      log('warn', 'changes of state cannot be stored yet', { error: String(error) })
      return false
    }
  }

  async #prune({ kind, subject_id }: Row): Promise<void> {
    const { store } = this.#deps
    const beyond = store.db
      .selectFrom('state_change')
      .select('id')
      .where('kind', '=', kind)
      .where('subject_id', '=', subject_id)
      .orderBy('at', 'desc')
      .orderBy('id', 'desc')
      .limit(BATCH)
      .offset(MAX_CHANGES_OF_ONE)
    await execute(store, store.db.deleteFrom('state_change').where('id', 'in', beyond))
  }

  async #forgetOld(): Promise<void> {
    const { store, wallNow } = this.#deps
    const now = wallNow()
    if (Math.abs(now - this.#prunedAt) < HOUR_MS) return
    this.#prunedAt = now
    const old = store.db
      .selectFrom('state_change')
      .select('id')
      .where('at', '<', now - KEPT_MS)
      .orderBy('at')
      .limit(MAX_CHANGES_OF_ONE)
    await execute(store, store.db.deleteFrom('state_change').where('id', 'in', old))
  }
}

const subjectsOf = (rows: readonly Row[]): readonly Row[] => [
  ...new Map(rows.map((row) => [`${row.kind} ${row.subject_id}`, row])).values(),
]

/** The change of a node, for its history. */
export const stateOfNode = (
  { nodeId: subjectId, setId, destination: name, from, to, cause, reason, by }: NodeChange,
  dispatcher: Dispatcher,
): StateChange => ({
  kind: 'node',
  subjectId,
  tenantId: dispatcher.setRecord(setId)?.tenantId ?? null,
  name,
  from,
  to,
  cause,
  reason,
  by,
})
