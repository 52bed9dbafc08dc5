/** Spend guards in the database, as operators see and set them. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { sql } from 'kysely'
import { z } from 'zod'
import { HOUR_MS, DAY_MS } from '../../schema/clock.ts'
import { moneyToNumber } from '../../schema/columns.ts'
import type { OcsPort } from '../../schema/contracts/charging.ts'
import { type Brake, capActions, capPeriods, type CapScope } from '../../schema/contracts/limits.ts'
import type { Store } from '../../schema/storage/store.ts'
import { type Window, windows } from '../../schema/records/record-windows.ts'
import { coversNumber } from '../../schema/rules/numbers.ts'
import { all, execute, first, readApart } from '../../schema/sql/query.ts'
import type { Principal } from '../auth/principal.ts'
import { conflict } from '../http/api-error.ts'
import { pageOf } from '../http/rows.ts'
import { bodyOf } from '../instances/instance-client.ts'
import type { PeerRequests } from '../instances/other-instances.ts'
import { cappedAnswer } from '../instances/questions.ts'
import type { Slice } from './resource.ts'

/** The state of a guard without its uuid. */
export type SpendingCapState = z.output<typeof spendingCapState>

export interface SpendingCapFilter extends Omit<Slice, 'search'> {
  readonly scope?: CapScope | undefined
  readonly scopeId?: number | undefined
  /** False: also those that expired or were removed, of the last 30 days. */
  readonly isActive: boolean
}

/** The most guards of one tenant; the platform may have more. */
const MAX_OF_TENANT = 1_000
const MAX_IN_ALL = 20_000
/** How long ended guards stay stored. */
const RETENTION_MS = 30 * DAY_MS

export class SpendingCapStore {
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

  /** The guards on a tenant, on its customers and on its extensions; null: all guards. */
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
    { scope, scopeId, isActive, ...slice }: SpendingCapFilter,
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
    const sorted = query
      .selectAll('spend_guard')
      .select(names)
      .orderBy('spend_guard.created_at', 'desc')
      .orderBy('guard_uuid', 'desc')
    return pageOf(this.#store, sorted, slice)
  }

  /** Undefined: no guard that this tenant may see has this uuid. */
  find(tenantId: number | null, capUuid: string) {
    const query = this.#visible(tenantId).where('guard_uuid', '=', capUuid)
    return first(this.#store, query.selectAll('spend_guard').select(names))
  }

  /**
   * The guard in force that `setBy` has set for these calls; a new guard of `setBy` replaces it.
   */
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

  /** The guards that were in force at that time. */
  async inForce(tenantId: number | null, at: number) {
    const query = this.#visible(tenantId)
      .where('spend_guard.created_at', '<=', at)
      .where(({ or, eb }) => or([eb('ended_at', 'is', null), eb('ended_at', '>', at)]))
      .where(({ or, eb }) => or([eb('expires_at', 'is', null), eb('expires_at', '>', at)]))
    return all(this.#store, query.selectAll('spend_guard').select(names).limit(MAX_IN_ALL))
  }

  /** Null: the guard is removed, or never existed. */
  async state(capUuid: string): Promise<SpendingCapState | null> {
    const { db } = this.#store
    const query = db.selectFrom('spend_guard').selectAll().where('guard_uuid', '=', capUuid)
    const row = await first(this.#store, query.where('ended_at', 'is', null))
    return row === undefined ? null : stateOf(row)
  }

  /** Whether the customer, extension or tenant still exists. */
  async isOwned({ customer_id, extension_id, tenant_id }: SpendingCapState): Promise<boolean> {
    const { db } = this.#store
    const id = customer_id ?? extension_id ?? tenant_id ?? 0
    const table = customer_id !== null ? 'customer' : extension_id !== null ? 'extension' : 'tenant'
    return (
      (await first(this.#store, db.selectFrom(table).select('id').where('id', '=', id))) !==
      undefined
    )
  }

  /** Inserts or updates a guard. */
  async put(capUuid: string, state: SpendingCapState, at: number): Promise<void> {
    const { db } = this.#store
    const row = { ...state, changed_at: at, ended_at: null, ended_by: null }
    const update = db.updateTable('spend_guard').set(row).where('guard_uuid', '=', capUuid)
    if ((await execute(this.#store, update.where('ended_at', 'is', null))) > 0) return
    await this.#forgetOld(at)
    await this.#refuseMany(state.set_by_tenant_id, at)
    // Undoing a removal brings an ended guard back.
    if ((await execute(this.#store, update)) > 0) return
    const insert = db.insertInto('spend_guard').values({ ...row, guard_uuid: capUuid })
    await execute(this.#store, insert)
  }

  async end(capUuid: string, by: string, at: number): Promise<void> {
    const ended = this.#store.db
      .updateTable('spend_guard')
      .set({ ended_at: at, ended_by: by })
      .where('guard_uuid', '=', capUuid)
      .where('ended_at', 'is', null)
    await execute(this.#store, ended)
  }

  /** The used amount of caps, by `capResource`. */
  async used(caps: readonly string[]): Promise<ReadonlyMap<string, number>> {
    if (caps.length === 0) return new Map()
    const query = this.#store.db
      .selectFrom('share')
      .select(({ fn }) => ['resource', fn.sum<number>('amount').as('amount')])
      .where('kind', '=', 'cap')
      .where('resource', 'in', caps)
      .groupBy('resource')
    const rows = await all(this.#store, query)
    return new Map(rows.map(({ resource, amount }) => [resource, amount]))
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
        'There are too many spend guards. Set one on a shorter prefix instead, which ' +
          'covers the longer ones',
      )
  }

  async #forgetOld(at: number): Promise<void> {
    const old = this.#store.db
      .deleteFrom('spend_guard')
      .where(({ or, eb }) =>
        or([eb('ended_at', '<', at - RETENTION_MS), eb('expires_at', '<', at - RETENTION_MS)]),
      )
    await execute(this.#store, old)
    const used = this.#store.db.deleteFrom('share').where('kind', '=', 'cap')
    const guard = sql<boolean>`NOT EXISTS (
      SELECT 1 FROM spend_guard WHERE guard_uuid = substr(${sql.ref('share.resource')}, 1, 36))`
    await execute(this.#store, used.where(guard))
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

export type SpendingCapRow = NonNullable<Awaited<ReturnType<SpendingCapStore['find']>>>

const id = z.int().nullable()

export const spendingCapState = z.strictObject({
  customer_id: id,
  extension_id: id,
  tenant_id: id,
  set_by_tenant_id: id,
  prefix: z.string(),
  action: z.enum(capActions),
  amount_micros: z.int(),
  currency: z.string().nullable(),
  per: z.enum(capPeriods).nullable(),
  reason: z.string(),
  created_by: z.string(),
  created_at: z.int(),
  expires_at: id,
  ends_calls_before: id,
})
const columnsOfState = spendingCapState.strip()

/** Drops the other columns of a row. */
export const stateOf = (row: SpendingCapState): SpendingCapState => columnsOfState.parse(row)

/** A call that a spend guard stopped. Its record does not say which one. */
interface StoppedCall {
  readonly caller_id_number: string
  readonly destination_number: string
  readonly start_stamp: number
  readonly answer_stamp: number | null
  readonly end_stamp: number
  readonly customer_id: number | null
  readonly tenant_id: number | null
}

interface CapReader {
  readonly store: Store
  readonly principal: Principal
  /** Absent: an external OCS charges. */
  readonly ocs?: Pick<OcsPort, 'exitCodes'> | undefined
}

/**
 * The uuids of the guards that covered the call, longest prefix first, as far as the caller may see
 * them.
 */
export async function capsOfCall(
  call: StoppedCall,
  { store, principal, ocs }: CapReader,
): Promise<string[]> {
  const at = call.answer_stamp === null ? call.start_stamp : call.end_stamp
  const rows = await new SpendingCapStore(store).inForce(principal.tenantId, at)
  const own = rows
    .filter((row) => isOf(row, call))
    .toSorted((a, b) => b.prefix.length - a.prefix.length)
  const { destination_number: number } = call
  const covering = own.filter(({ prefix }) => coversNumber(prefix, number, ocs?.exitCodes))
  // A guard may have covered a number of a gateway, which the record does not have.
  return (covering.length > 0 ? covering : own).map(({ guard_uuid }) => guard_uuid)
}

function isOf(row: SpendingCapRow, call: StoppedCall): boolean {
  if (row.customer_id !== null) return row.customer_id === call.customer_id
  if (row.tenant_id !== null) return row.tenant_id === call.tenant_id
  // A refused call without a payer has no tenant in its record.
  const isOfTenant = call.tenant_id === null || row.extension_tenant === call.tenant_id
  return isOfTenant && row.number === call.caller_id_number.replace(/^\+/, '')
}

/** Dependencies of the figures that a plan shows about a spend guard. */
export interface SpendingCapDeps {
  readonly store: Store
  readonly ocs: Pick<OcsPort, 'callsUnder' | 'exitCodes'>
  /** The other instances of the installation; undefined: there is none to ask. */
  readonly peers?: PeerRequests | undefined
  /** Milliseconds UTC. */
  readonly now: () => number
}

/** Records of one statement: SIP shares the thread. */
const WINDOW = 1_000
/** Where a period has more than 20,000 records, the newest are read. */
const MAX_WINDOWS = 20

/** Live calls of all instances, and the cost of ended calls to the prefix. */
export async function cappedCalls(
  brake: Brake,
  deps: SpendingCapDeps,
): Promise<Readonly<Record<string, number>>> {
  const at = deps.now()
  const { scopeId, scope, extension } = brake
  const reader = scope === 'tenant' ? scopeId : (extension?.tenantId ?? null)
  const costOf = (ms: number) =>
    readApart(deps.store, reader, () => costSince(brake, { from: at - ms, before: at + 1 }, deps))
  const [lastHour, lastDay] = [await costOf(HOUR_MS), await costOf(DAY_MS)]
  return {
    live_calls: await liveCalls(brake, deps),
    calls_last_hour: lastHour.calls,
    ...spending('spent_last_hour', lastHour.costMicros),
    calls_last_day: lastDay.calls,
    ...spending('spent_last_day', lastDay.costMicros),
  }
}

async function liveCalls(brake: Brake, { ocs, peers }: SpendingCapDeps): Promise<number> {
  const own = ocs.callsUnder(brake)
  if (peers === undefined) return own
  const answers = await peers.question({ kind: 'guarded', ...brake })
  return answers.reduce((sum, answer) => sum + (bodyOf(answer, cappedAnswer)?.calls ?? 0), own)
}

/** The sum is a plain number in one currency, and a number for each of several currencies. */
function spending(name: string, costs: ReadonlyMap<string, number>): Record<string, number> {
  if (costs.size < 2) return { [name]: moneyToNumber([...costs.values()][0] ?? 0) }
  return Object.fromEntries(
    [...costs].map(([currency, micros]) => [`${name}_${currency}`, moneyToNumber(micros)]),
  )
}

/**
 * The cost of answered calls. Calls are summed by number, because a prefix has several spellings.
 */
async function costSince(
  brake: Brake,
  { from, before }: Window,
  { store, ocs }: Pick<SpendingCapDeps, 'store' | 'ocs'>,
) {
  const scope = {
    tenantId: brake.scope === 'tenant' ? brake.scopeId : (brake.extension?.tenantId ?? null),
    customerId: brake.scope === 'customer' ? brake.scopeId : undefined,
  }
  const costMicros = new Map<string, number>()
  let calls = 0
  let left = MAX_WINDOWS
  for await (const window of windows(store, scope, { from, before }, WINDOW)) {
    if (left === 0) break
    left -= 1
    for (const row of await costsIn(brake, window, store)) {
      if (!coversNumber(brake.prefix, row.destination_number, ocs.exitCodes)) continue
      calls += row.calls
      if (row.currency !== null)
        costMicros.set(row.currency, (costMicros.get(row.currency) ?? 0) + row.cost)
    }
    await nextTurn()
  }
  return { calls, costMicros }
}

function costsIn(brake: Brake, { from, before }: Window, store: Store) {
  let query = store.db
    .selectFrom('cdr')
    .select(({ fn }) => [
      'destination_number',
      'currency',
      fn.countAll<number>().as('calls'),
      fn.sum<number>('cost_micros').as('cost'),
    ])
    .where('start_stamp', '>=', from)
    .where('start_stamp', '<', before)
    .where('billsec', '>', 0)
    .groupBy(['destination_number', 'currency'])
  if (brake.scope === 'customer') query = query.where('customer_id', '=', brake.scopeId)
  if (brake.scope === 'tenant') query = query.where('tenant_id', '=', brake.scopeId)
  if (brake.extension !== null)
    query = query
      .where('tenant_id', '=', brake.extension.tenantId)
      .where('caller_id_number', '=', brake.extension.number)
  return all(store, query)
}
