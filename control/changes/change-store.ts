/** The entries of changes in the database. */
import { type Selectable, sql, type Updateable } from 'kysely'
import { timeToText } from '../../schema/columns.ts'
import type { Store } from '../../schema/storage/store.ts'
import { all, execute, first, readApart, transaction } from '../../schema/sql/query.ts'
import type { ChangeEntryTable, ChangeState } from '../../schema/tables/changes.ts'
import { fieldsOf, isSameState, type Json, type RestorableKind, sharedFields } from './kinds.ts'
import { lossOf, StateQuota } from './state-quota.ts'
import { MAX_COUNTED, MAX_LISTED } from '../http/envelope.ts'
import { countOf } from '../http/rows.ts'
import { timeOrNull } from '../http/view-fields.ts'

export type ChangeEntry = Selectable<ChangeEntryTable>
export type NewChangeEntry = Omit<ChangeEntry, 'id' | keyof UndoColumns>
type UndoColumns = Pick<ChangeEntry, 'undone_at' | 'undone_by' | 'undo_reason'>

/** The tenant whose changes a caller may see; null for all. */
export type ChangesOf = number | null

export interface ChangeFilter {
  readonly tenantId: ChangesOf
  readonly actor?: string | undefined
  readonly tool?: string | undefined
  readonly target_kind?: string | undefined
  readonly target_id?: string | undefined
  readonly state?: ChangeState | undefined
  /** Milliseconds UTC; `before` is exclusive. */
  readonly from?: number | undefined
  readonly before?: number | undefined
}

export interface ChangeTarget {
  readonly kind: string
  readonly id: string
}

export interface ChangeEnd extends UndoColumns {
  readonly undone_by: string
  readonly state: Extract<ChangeState, 'undone' | 'expired' | 'superseded'>
}

/** A process that makes or undoes a change has ended when it takes longer. */
export const CLAIM_MS = 30_000

/** Changes of one target that are compared with a state. */
const MAX_COMPARED = 100

export class ChangeStore {
  readonly #store: Store
  readonly #quota: StateQuota

  constructor(store: Store, quota = new StateQuota(store)) {
    this.#store = store
    this.#quota = quota
  }

  /** Runs in a transaction of the caller. */
  async insert(entry: NewChangeEntry): Promise<void> {
    const admitted = await this.#quota.admit(entry)
    await execute(this.#store, this.#store.db.insertInto('change_entry').values(admitted))
  }

  find(changeId: string, of: ChangesOf): Promise<ChangeEntry | undefined> {
    let query = this.#store.db
      .selectFrom('change_entry')
      .selectAll()
      .where('change_id', '=', changeId)
    if (of !== null) query = query.where('tenant_id', '=', of)
    return first(this.#store, query)
  }

  /**
   * The last changes of a target that stand, the last one first; with `after`, those that were made
   * after it.
   */
  lastMade({ kind, id }: ChangeTarget, after = 0): Promise<readonly ChangeEntry[]> {
    const query = this.#ofTarget({ kind, id }).where('state', '=', 'made').where('id', '>', after)
    return all(this.#store, query)
  }

  /**
   * The last changes of a target before one of them, the last one first, but for those that were
   * taken back.
   */
  lastBefore(target: ChangeTarget, before: number): Promise<readonly ChangeEntry[]> {
    const query = this.#ofTarget(target)
      .where('state', 'not in', ['undone', 'expired'])
      .where('id', '<', before)
    return all(this.#store, query)
  }

  #ofTarget({ kind, id }: ChangeTarget) {
    return this.#store.db
      .selectFrom('change_entry')
      .selectAll()
      .where('target_kind', '=', kind)
      .where('target_id', '=', id)
      .orderBy('id', 'desc')
      .limit(MAX_COMPARED)
  }

  /** Whether a process makes or undoes a change of this target now. */
  async isClaimed({ kind, id }: ChangeTarget, now: number): Promise<boolean> {
    const query = this.#store.db
      .selectFrom('change_entry')
      .select('id')
      .where('target_kind', '=', kind)
      .where('target_id', '=', id)
      .where('claimed_until', '>', now)
      .limit(1)
    return (await first(this.#store, query)) !== undefined
  }

  async claim(changeId: string, until: number | null): Promise<void> {
    await this.#update(changeId, { claimed_until: until })
  }

  /** Ends all claims: the processes that had them are dead. Pending changes stay pending. */
  async endClaims(): Promise<void> {
    const claimed = this.#store.db.updateTable('change_entry').where('claimed_until', '>', 0)
    await execute(this.#store, claimed.set({ claimed_until: 0 }))
  }

  /** Ends a pending change as made, or as unconfirmed. */
  async settle(changeId: string, state: 'made' | 'unconfirmed'): Promise<void> {
    const update = this.#store.db
      .updateTable('change_entry')
      .set({ state, claimed_until: null })
      .where('change_id', '=', changeId)
      .where('state', 'in', state === 'made' ? ['pending', 'unconfirmed'] : ['pending'])
    await execute(this.#store, update)
  }

  /** A pending change was refused: nothing has changed. */
  async remove(changeId: string): Promise<void> {
    const { db } = this.#store
    await transaction(this.#store, async () => {
      const entry = await this.find(changeId, null)
      if (entry?.state !== 'pending') return
      await execute(this.#store, db.deleteFrom('change_entry').where('id', '=', entry.id))
      await this.#quota.deleted([entry])
    })
  }

  /** Ends a change that stands; an ended change stays as it is. */
  async end(entry: ChangeEntry, ended: ChangeEnd): Promise<void> {
    const update = this.#store.db
      .updateTable('change_entry')
      .set({ ...ended, claimed_until: null })
      .where('id', '=', entry.id)
      .where('state', '=', 'made')
    await transaction(this.#store, async () => {
      const isEnded = (await execute(this.#store, update)) > 0
      // A later change leads back to the state of a superseded one.
      if (isEnded && ended.state !== 'superseded') await this.#quota.ended(entry)
    })
  }

  /**
   * The state before a pending change is another one than when it was entered. It is about no row,
   * so its states are words, which do not count (`state-quota.ts`).
   */
  async rewrite({ change_id, ...entry }: NewChangeEntry): Promise<void> {
    const { effect, state_before, state_after } = entry
    await this.#update(change_id, { effect, state_before, state_after })
  }

  async #update(changeId: string, columns: Updateable<ChangeEntryTable>): Promise<void> {
    const update = this.#store.db.updateTable('change_entry').set(columns)
    await execute(this.#store, update.where('change_id', '=', changeId))
  }

  /** Expired changes, oldest first, without `except`. */
  due(now: number, limit: number, except: readonly string[]): Promise<readonly ChangeEntry[]> {
    // A literal: with a parameter, SQLite would not use the index.
    let query = this.#store.db
      .selectFrom('change_entry')
      .selectAll()
      .where('state', '=', sql.lit('made'))
      .where('expires_at', '<=', now)
      .where((row) => row.or([row('claimed_until', 'is', null), row('claimed_until', '<=', now)]))
    if (except.length > 0) query = query.where('change_id', 'not in', except)
    return all(this.#store, query.orderBy('expires_at').limit(limit))
  }

  /** Pending changes whose process is gone. */
  abandoned(now: number, limit: number): Promise<readonly ChangeEntry[]> {
    const query = this.#store.db
      .selectFrom('change_entry')
      .selectAll()
      .where('state', '=', sql.lit('pending'))
      .where('claimed_until', '<=', now)
      .orderBy('claimed_until')
      .limit(limit)
    return all(this.#store, query)
  }

  /** Newest first. */
  async list(filter: ChangeFilter, page: { readonly limit: number; readonly offset: number }) {
    let query = this.#store.db.selectFrom('change_entry').selectAll()
    const { tenantId, actor, from, before } = filter
    if (tenantId !== null) query = query.where('tenant_id', '=', tenantId)
    if (actor !== undefined)
      query = query.where((row) =>
        row.or([row('actor', '=', actor), row('actor_name', '=', actor)]),
      )
    for (const column of ['tool', 'target_kind', 'target_id', 'state'] as const) {
      const wanted = filter[column]
      if (wanted !== undefined) query = query.where(column, '=', wanted)
    }
    if (from !== undefined) query = query.where('at', '>=', from)
    if (before !== undefined) query = query.where('at', '<', before)
    const some = query.clearSelect().select('id').limit(MAX_COUNTED)
    const rows = query
      .orderBy('at', 'desc')
      .orderBy('id', 'desc')
      .limit(page.limit)
      .offset(page.offset)
    return readApart(this.#store, tenantId, async () => ({
      entries: page.offset >= MAX_LISTED ? [] : await all(this.#store, rows),
      total: await countOf(this.#store, some),
    }))
  }
}

/** A state as it is stored. */
export const stateText = (state: Json | null): string | null =>
  state === null ? null : JSON.stringify(state)

export const stateIn = (text: string | null): Json | null =>
  text === null ? null : (JSON.parse(text) as Json)

/**
 * The last change that stands and is about the same as this state; with `after`, one that was made
 * after it.
 */
export async function lastAbout(
  entries: ChangeStore,
  kind: RestorableKind | null,
  target: ChangeTarget,
  state: Json | null,
  after = 0,
): Promise<ChangeEntry | undefined> {
  const made = await entries.lastMade(target, after)
  return made.find((entry) => isAbout(kind, entry, state))
}

const isAbout = (
  kind: RestorableKind | null,
  { state_before: before, state_after: after }: ChangeEntry,
  state: Json | null,
): boolean =>
  kind?.isAbout === undefined ||
  kind.isAbout(stateIn(before), state) ||
  kind.isAbout(stateIn(after), state)

/**
 * The state to which the end of a change leads: that before it. Where a temporary change had made
 * that state, and its time is over meanwhile, it is the state before that one, and so on.
 */
export async function stateAtEnd(
  entry: ChangeEntry,
  kind: RestorableKind,
  entries: ChangeStore,
): Promise<Json | null> {
  const target = { kind: entry.target_kind, id: entry.target_id }
  const earlier = await entries.lastBefore(target, entry.id)
  let state = stateIn(entry.state_before)
  let over = entry
  for (const under of earlier.filter((each) => isAbout(kind, each, stateIn(entry.state_before)))) {
    const wasOver = under.expires_at !== null && under.expires_at <= over.at
    const after = sharedFields(stateIn(under.state_after), state)
    if (under.state !== 'superseded' || wasOver || !isSameState(kind, state, after)) break
    const before = sharedFields(stateIn(under.state_before), state)
    const [fields, restored] = [fieldsOf(state), fieldsOf(before)]
    state = fields === null || restored === null ? before : { ...fields, ...restored }
    over = under
  }
  return state
}

/** A change as the API shows it. */
export type ChangeView = ReturnType<typeof changeView>

export const changeView = (entry: ChangeEntry) => ({
  change_id: entry.change_id,
  at: timeToText(entry.at),
  state: entry.state,
  actor: entry.actor,
  actor_name: entry.actor_name,
  tenant_id: entry.tenant_id,
  tool: entry.tool,
  target_kind: entry.target_kind,
  target_id: entry.target_id,
  reason: entry.reason,
  effect: entry.effect,
  before: stateIn(entry.state_before),
  after: stateIn(entry.state_after),
  is_reversible: entry.undo === 'restores',
  is_state_kept: lossOf(entry) === null,
  expires_at: timeOrNull(entry.expires_at),
  undone_at: timeOrNull(entry.undone_at),
  undone_by: entry.undone_by,
  undo_reason: entry.undo_reason,
  proposal_id: entry.proposal_id,
})
