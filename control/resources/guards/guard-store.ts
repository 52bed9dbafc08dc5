/** Spend guards in the database, as operators see and set them. */
import type { Selectable } from 'kysely'
import type { SpendGuardTable } from '../../../schema/tables/spend-guards.ts'
import type { Brake, GuardScope } from '../../../schema/contracts/spend-guards.ts'
import type { Store } from '../../../schema/open.ts'
import { all, execute, first } from '../../../schema/sql/query.ts'
import { conflict } from '../../http/api-error.ts'
import type { Slice } from '../resource.ts'

/** What a guard says; its uuid stays. A type, as it is JSON. */
export type GuardState = Omit<
  Selectable<SpendGuardTable>,
  'guard_uuid' | 'changed_at' | 'ended_at' | 'ended_by'
>

export interface GuardFilter extends Omit<Slice, 'search'> {
  readonly scope?: GuardScope | undefined
  readonly scopeId?: number | undefined
  /** False: also those that expired or were removed, of the last 30 days. */
  readonly isActive: boolean
}

/** One tenant sets no more; the platform may set many. */
const MAX_OF_TENANT = 1_000
const MAX_IN_ALL = 20_000
/** Those that have ended are kept for so long. */
const KEPT_MS = 30 * 86_400_000

export class GuardStore {
  readonly #store: Store

  constructor(store: Store) {
    this.#store = store
  }

  #rows() {
    return this.#store.db
      .selectFrom('spend_guard')
      .leftJoin('customer', 'customer.id', 'spend_guard.customer_id')
      .leftJoin('extension', 'extension.id', 'spend_guard.extension_id')
      .leftJoin('tenant', 'tenant.id', 'spend_guard.tenant_id')
  }

  /** Those of a tenant are on it, on its customers and on its extensions; null: all. */
  #visible(tenantId: number | null) {
    const rows = this.#rows()
    if (tenantId === null) return rows
    return rows.where(({ or, eb }) =>
      or([
        eb('spend_guard.tenant_id', '=', tenantId),
        eb('customer.tenant_id', '=', tenantId),
        eb('extension.tenant_id', '=', tenantId),
      ]),
    )
  }

  async list(
    tenantId: number | null,
    { scope, scopeId, isActive, ...slice }: GuardFilter,
    at: number,
  ) {
    let query = this.#visible(tenantId)
    if (scope !== undefined) query = query.where(`spend_guard.${scope}_id`, 'is not', null)
    if (scope !== undefined && scopeId !== undefined)
      query = query.where(`spend_guard.${scope}_id`, '=', scopeId)
    if (isActive)
      query = query
        .where('ended_at', 'is', null)
        .where(({ or, eb }) => or([eb('expires_at', 'is', null), eb('expires_at', '>', at)]))
    const rows = await all(
      this.#store,
      query
        .selectAll('spend_guard')
        .select(names)
        .orderBy('spend_guard.created_at', 'desc')
        .orderBy('guard_uuid', 'desc')
        .limit(slice.limit)
        .offset(slice.offset),
    )
    const counted = await first(
      this.#store,
      query.select(({ fn }) => fn.countAll<number>().as('total')),
    )
    return { rows, total: counted?.total ?? 0 }
  }

  /** Undefined: there is none that this tenant may see. */
  find(tenantId: number | null, guardUuid: string) {
    const query = this.#visible(tenantId).where('guard_uuid', '=', guardUuid)
    return first(this.#store, query.selectAll('spend_guard').select(names))
  }

  /** The one that `setBy` has set for these calls, which another one of it replaces. */
  present(brake: Brake, setBy: number | null, at: number) {
    const query = this.#rows()
      .where(`spend_guard.${brake.scope}_id`, '=', brake.scopeId)
      .where('prefix', '=', brake.prefix)
      .where('set_by_tenant_id', setBy === null ? 'is' : '=', setBy)
      .where('ended_at', 'is', null)
      .where(({ or, eb }) => or([eb('expires_at', 'is', null), eb('expires_at', '>', at)]))
    return first(
      this.#store,
      query.selectAll('spend_guard').select(names).orderBy('guard_uuid').limit(1),
    )
  }

  /** Those that were in force then. */
  async inForce(tenantId: number | null, at: number) {
    const query = this.#visible(tenantId)
      .where('spend_guard.created_at', '<=', at)
      .where(({ or, eb }) => or([eb('ended_at', 'is', null), eb('ended_at', '>', at)]))
      .where(({ or, eb }) => or([eb('expires_at', 'is', null), eb('expires_at', '>', at)]))
    return all(this.#store, query.selectAll('spend_guard').select(names).limit(MAX_IN_ALL))
  }

  /** Null: it is removed, or there was none. */
  async state(guardUuid: string): Promise<GuardState | null> {
    const { db } = this.#store
    const query = db.selectFrom('spend_guard').selectAll().where('guard_uuid', '=', guardUuid)
    const row = await first(this.#store, query.where('ended_at', 'is', null))
    return row === undefined ? null : stateOf(row)
  }

  /** The customer, extension or tenant is there still. */
  async isOwned({ customer_id, extension_id, tenant_id }: GuardState): Promise<boolean> {
    const { db } = this.#store
    const id = customer_id ?? extension_id ?? tenant_id ?? 0
    const table = customer_id !== null ? 'customer' : extension_id !== null ? 'extension' : 'tenant'
    return (
      (await first(this.#store, db.selectFrom(table).select('id').where('id', '=', id))) !==
      undefined
    )
  }

  /** Sets it, new or again. */
  async put(guardUuid: string, state: GuardState, at: number): Promise<void> {
    const { db } = this.#store
    const row = { ...state, changed_at: at, ended_at: null, ended_by: null }
    const update = db.updateTable('spend_guard').set(row).where('guard_uuid', '=', guardUuid)
    if ((await execute(this.#store, update.where('ended_at', 'is', null))) > 0) return
    await this.#forgetOld(at)
    await this.#refuseMany(state.set_by_tenant_id, at)
    // One that ended comes back, when its removal is undone.
    if ((await execute(this.#store, update)) > 0) return
    const insert = db.insertInto('spend_guard').values({ ...row, guard_uuid: guardUuid })
    await execute(this.#store, insert)
  }

  async end(guardUuid: string, by: string, at: number): Promise<void> {
    const ended = this.#store.db
      .updateTable('spend_guard')
      .set({ ended_at: at, ended_by: by })
      .where('guard_uuid', '=', guardUuid)
      .where('ended_at', 'is', null)
    await execute(this.#store, ended)
  }

  /** What was taken of caps, by their uuids and periods. */
  async used(guardUuids: readonly string[]) {
    if (guardUuids.length === 0) return []
    const query = this.#store.db.selectFrom('spend_guard_use').selectAll()
    return all(this.#store, query.where('guard_uuid', 'in', guardUuids))
  }

  async #refuseMany(setBy: number | null, at: number): Promise<void> {
    let query = this.#store.db
      .selectFrom('spend_guard')
      .select(({ fn }) => fn.countAll<number>().as('total'))
      .where('ended_at', 'is', null)
      .where(({ or, eb }) => or([eb('expires_at', 'is', null), eb('expires_at', '>', at)]))
    if (setBy !== null) query = query.where('set_by_tenant_id', '=', setBy)
    const { total = 0 } = (await first(this.#store, query)) ?? {}
    if (total >= (setBy === null ? MAX_IN_ALL : MAX_OF_TENANT))
      throw conflict(
        'too_many_spend_guards',
        'There are too many spend guards. Set one on a shorter prefix instead, which covers the longer ones',
      )
  }

  async #forgetOld(at: number): Promise<void> {
    const old = this.#store.db
      .deleteFrom('spend_guard')
      .where(({ or, eb }) =>
        or([eb('ended_at', '<', at - KEPT_MS), eb('expires_at', '<', at - KEPT_MS)]),
      )
    await execute(this.#store, old)
  }
}

const names = [
  'customer.name as customer',
  'customer.tenant_id as customer_tenant',
  'extension.extension as number',
  'extension.domain',
  'extension.tenant_id as extension_tenant',
  'tenant.slug as tenant',
] as const

export type GuardRow = NonNullable<Awaited<ReturnType<GuardStore['find']>>>

export const stateOf = (row: GuardState): GuardState => ({
  customer_id: row.customer_id,
  extension_id: row.extension_id,
  tenant_id: row.tenant_id,
  set_by_tenant_id: row.set_by_tenant_id,
  prefix: row.prefix,
  action: row.action,
  amount_micros: row.amount_micros,
  currency: row.currency,
  per: row.per,
  reason: row.reason,
  created_by: row.created_by,
  created_at: row.created_at,
  expires_at: row.expires_at,
  ends_calls_before: row.ends_calls_before,
})
