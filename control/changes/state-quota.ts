/**
 * Bounds what the entries of changes hold of states, for each tenant and for the platform: the
 * oldest states give way to new ones. The entry itself stays, with who, what, when and why, and
 * with the names of the fields.
 *
 * A row of the table `setting` counts for each owner, in the transaction that writes the entry;
 * each write that counts lets go as much as it adds. The states of a temporary change are needed at
 * its end: they never give way, and are counted by number.
 */
import { fieldsOf, type FieldState, type Json } from './kinds.ts'
import { createHash } from 'node:crypto'
import type { Selectable } from 'kysely'
import { z } from 'zod'
import type { Store } from '../../schema/storage/store.ts'
import { all, execute, first } from '../../schema/sql/query.ts'
import type { ChangeEntryTable } from '../../schema/tables/changes.ts'
import { type ApiError, conflict } from '../http/api-error.ts'
import { grouped } from '../http/rows.ts'

type Entry = Selectable<ChangeEntryTable>
type NewEntry = Omit<Entry, 'id' | 'undone_at' | 'undone_by' | 'undo_reason'>
type States = Pick<Entry, 'state_before' | 'state_after'>
/** The columns that determine the size and the owner of an entry. */
export type CountedEntry = Pick<Entry, (typeof countedColumns)[number]>

interface StateLimits {
  /** Bytes of states. */
  readonly bytes: number
  /** Changes with an end. */
  readonly temporary: number
}

const MIB = 1_048_576
/** About 32,768 small changes. */
const limitsOfTenant: StateLimits = { bytes: 16 * MIB, temporary: 4_096 }
/** Limits for changes outside of tenants. */
const limitsOfPlatform: StateLimits = { bytes: 64 * MIB, temporary: 16_384 }

/** An entry has no less: so few give way to one. */
const LEAST_BYTES = 512
/**
 * An entry with less counts for this or for nothing, in proportion: writes of one owner that run at
 * the same time seldom meet at its row, where PostgreSQL lets one of them run again.
 */
const UNIT_BYTES = 4_096
/** Entries that are read at once: they may have 64 kB each. */
const BATCH = 8
/** Batches of one write: 320 entries, where the largest displaces about 128 of the smallest. */
const MAX_BATCHES = 40

/** Replaces each value of a state that is too long. */
export const TOO_LONG = 'longer than is kept'
/** Replaces each value of a state that was removed for newer ones. */
const LET_GO = 'no longer kept'

/** The use of one owner. Entries up to `at` and `id` do not count. */
const space = z.strictObject({ bytes: z.int(), temporary: z.int(), at: z.int(), id: z.int() })
type Space = z.output<typeof space>

export class StateQuota {
  readonly #store: Store
  readonly #limitsOf: (tenantId: number | null) => StateLimits

  constructor(store: Store, limitsOf = defaultLimits) {
    this.#store = store
    this.#limitsOf = limitsOf
  }

  /**
   * The entry as it is to be inserted by the transaction of the caller. Throws 409 for a temporary
   * change when too many of the tenant wait for their end.
   */
  async admit(entry: NewEntry): Promise<NewEntry> {
    const bytes = weightOf(entry)
    const isTemporary = mustStay(entry)
    if (bytes === 0 && !isTemporary) return entry
    const { tenant_id: owner, at } = entry
    const limits = this.#limitsOf(owner)
    const held = (await this.#find(owner)) ?? { bytes: 0, temporary: 0, at: 0, id: 0 }
    if (isTemporary) {
      if (held.temporary >= limits.temporary) throw tooManyTemporary(owner, limits)
      await this.#put(owner, { ...held, temporary: held.temporary + 1 })
      return entry
    }
    // Clocks of instances differ: where one is behind, the oldest entry is an older one.
    const since = at < held.at ? { ...held, at, id: 0 } : held
    const left = await this.#makeRoom(owner, since, limits.bytes - bytes)
    const fits = left.bytes + bytes <= limits.bytes
    await this.#put(owner, fits ? { ...left, bytes: left.bytes + bytes } : left)
    return fits ? entry : { ...entry, ...withoutValues(entry), undo: 'none' }
  }

  /** A temporary change is over: its states count as those of others do, and may give way. */
  async ended(entry: CountedEntry): Promise<void> {
    const { tenant_id: owner, expires_at: expiresAt } = entry
    const held = expiresAt === null ? undefined : await this.#find(owner)
    if (held === undefined) return
    const bytes = weightOf(entry)
    const fits = !isPassed(entry, held) && held.bytes + bytes <= this.#limitsOf(owner).bytes
    if (!fits) await this.#letGo(entry)
    await this.#put(owner, {
      ...held,
      temporary: held.temporary - 1,
      bytes: held.bytes + (fits ? bytes : 0),
    })
  }

  /** These entries are deleted. */
  async deleted(entries: readonly CountedEntry[]): Promise<void> {
    for (const [owner, own] of grouped(entries, ({ tenant_id }) => tenant_id)) {
      const held = await this.#find(owner)
      if (held === undefined) continue
      const temporary = own.filter(mustStay)
      const counted = own.filter((entry) => !mustStay(entry) && !isPassed(entry, held))
      const bytes = counted.reduce((sum, entry) => sum + weightOf(entry), 0)
      const left = { bytes: held.bytes - bytes, temporary: held.temporary - temporary.length }
      if (left.bytes <= 0 && left.temporary <= 0 && !(await this.#hasEntries(owner)))
        await execute(
          this.#store,
          this.#store.db.deleteFrom('setting').where('name', '=', nameOf(owner)),
        )
      else if (bytes > 0 || temporary.length > 0) await this.#put(owner, { ...held, ...left })
    }
  }

  /** Lets the oldest states go until no more than this is held. Bounded: the next write goes on. */
  async #makeRoom(owner: number | null, held: Space, bytes: number): Promise<Space> {
    const left = { ...held }
    for (let batch = 0; batch < MAX_BATCHES && left.bytes > bytes; batch += 1) {
      const oldest = await this.#oldest(owner, left)
      for (const entry of oldest) {
        if (left.bytes <= bytes) break
        left.at = entry.at
        left.id = entry.id
        if (mustStay(entry)) continue
        left.bytes -= weightOf(entry)
        await this.#letGo(entry)
      }
      if (oldest.length < BATCH) break
    }
    return left
  }

  #oldest(owner: number | null, { at, id }: Pick<Space, 'at' | 'id'>): Promise<CountedEntry[]> {
    const query = this.#store.db
      .selectFrom('change_entry')
      .select(countedColumns)
      .where('tenant_id', owner === null ? 'is' : '=', owner)
      .where('at', '>=', at)
      .where((row) => row.or([row('at', '>', at), row('id', '>', id)]))
      .orderBy('at')
      .orderBy('id')
      .limit(BATCH)
    return all(this.#store, query)
  }

  async #letGo(entry: CountedEntry): Promise<void> {
    if (bytesOf(entry) === 0) return
    const update = this.#store.db
      .updateTable('change_entry')
      .set({ ...withoutValues(entry), undo: 'none' })
      .where('id', '=', entry.id)
    await execute(this.#store, update)
  }

  async #find(owner: number | null): Promise<Space | undefined> {
    const query = this.#store.db
      .selectFrom('setting')
      .select('value')
      .where('name', '=', nameOf(owner))
    const row = await first(this.#store, query)
    return row && space.parse(JSON.parse(row.value))
  }

  async #hasEntries(owner: number | null): Promise<boolean> {
    const [entry] = await this.#oldest(owner, { at: 0, id: 0 })
    return entry !== undefined
  }

  async #put(owner: number | null, { bytes, temporary, ...since }: Space): Promise<void> {
    // Entries of before this was counted are deleted, too.
    const held = { bytes: Math.max(0, bytes), temporary: Math.max(0, temporary), ...since }
    const value = JSON.stringify(held)
    const row = this.#store.db
      .insertInto('setting')
      .values({ name: nameOf(owner), value })
      .onConflict((taken) => taken.column('name').doUpdateSet({ value }))
    await execute(this.#store, row)
  }
}

export const countedColumns = [
  'id',
  'change_id',
  'at',
  'tenant_id',
  'state',
  'expires_at',
  'state_before',
  'state_after',
] as const

function defaultLimits(tenantId: number | null): StateLimits {
  return tenantId === null ? limitsOfPlatform : limitsOfTenant
}

const nameOf = (owner: number | null): string =>
  owner === null ? 'change_states' : `change_states:${owner}`

/**
 * At the end of a change, the state before it is restored, also beneath one that was superseded
 * (`stateAtEnd`).
 */
const mustStay = ({ expires_at: expiresAt, state }: Pick<Entry, 'expires_at' | 'state'>): boolean =>
  expiresAt !== null && state !== 'undone' && state !== 'expired'

const isPassed = ({ at, id }: Pick<Entry, 'at' | 'id'>, since: Space): boolean =>
  at < since.at || (at === since.at && id <= since.id)

/** Size for which an entry counts; it is always the same. */
function weightOf({ change_id, ...states }: States & Pick<Entry, 'change_id'>): number {
  const bytes = bytesOf(states)
  if (bytes === 0 || bytes >= UNIT_BYTES) return bytes
  const share = createHash('sha256').update(change_id).digest().readUInt32BE() / 2 ** 32
  return share < bytes / UNIT_BYTES ? UNIT_BYTES : 0
}

/**
 * 0: it has no values that could give way. A word such as `inactive` is no longer than what would
 * stand for it.
 */
function bytesOf({ state_before: before, state_after: after }: States): number {
  const texts = [before, after].filter((text) => text !== null && valuesIn(text) === 'kept')
  const bytes = texts.reduce((sum, text) => sum + Buffer.byteLength(text ?? ''), 0)
  return texts.length === 0 ? 0 : Math.max(LEAST_BYTES, bytes)
}

/** Why a change has only the names of its fields; null: it has their values. */
export function lossOf({
  state_before,
  state_after,
  undo,
}: States & Pick<Entry, 'undo'>): 'too_long' | 'let_go' | null {
  if (undo === 'restores') return null
  const values = [state_before, state_after].map((text) =>
    text === null ? 'none' : valuesIn(text),
  )
  return values.includes('let_go') ? 'let_go' : values.includes('too_long') ? 'too_long' : null
}

function valuesIn(text: string): 'kept' | 'none' | 'let_go' | 'too_long' {
  const values = Object.values(fieldsOf(JSON.parse(text) as Json) ?? {})
  if (values.length === 0) return 'none'
  if (values.every((value) => value === LET_GO)) return 'let_go'
  return values.every((value) => value === TOO_LONG) ? 'too_long' : 'kept'
}

const withoutValues = ({ state_before, state_after }: States): States => ({
  state_before: namesIn(state_before),
  state_after: namesIn(state_after),
})

function namesIn(text: string | null): string | null {
  const fields = text === null ? null : fieldsOf(JSON.parse(text) as Json)
  return fields === null ? text : JSON.stringify(namesOnly(fields, LET_GO))
}

/** The names still show which other changes are about the same fields. */
export const namesOnly = (state: FieldState, why: string): FieldState =>
  Object.fromEntries(Object.keys(state).map((name) => [name, why]))

const tooManyTemporary = (owner: number | null, { temporary }: StateLimits): ApiError =>
  conflict(
    'too_many_temporary_changes',
    `${temporary} temporary changes of ${owner === null ? 'the platform' : 'this tenant'} are ` +
      'kept already. Nothing was changed: make this one without a duration, or undo others that ' +
      'still stand',
  )
