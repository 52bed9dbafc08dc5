/** Jobs that price past calls anew, as the API begins, lists and undoes them. */
import { type Selectable, sql } from 'kysely'
import { exactSum } from '../../../schema/columns.ts'
import { type Tables, all, first, insert, execute, transaction } from '../../../schema/sql/query.ts'
import type { Store } from '../../../schema/storage/store.ts'
import type { ReratingKind, ReratingTable } from '../../../schema/tables/reratings.ts'
import type { RequestScope } from '../../auth/tenants.ts'
import { type ApiError, badRequest, conflict, notFound } from '../../http/api-error.ts'
import type { Reference } from '../../http/fields.ts'
import { pageOf, same } from '../../http/rows.ts'
import { badReference, resolve } from '../references.ts'
import { MAX_DIFFERENCES } from './rerating-preview.ts'
import type { ReratedCalls } from './rerated-calls.ts'

export interface ReratingOrder {
  readonly kind: ReratingKind
  readonly plan: Reference | null
  readonly customer: Reference | null
  readonly carrier: Reference | null
  /** Milliseconds UTC; `before` is exclusive. */
  readonly from: number
  readonly before: number
  readonly prefix: string
  readonly prices: 'at_call' | 'now'
}

export type Meant = ReratedCalls & { readonly rate_plan: string }

/** Throws an `ApiError` for an order that means no calls. */
export async function meantBy(
  store: Tables,
  order: ReratingOrder,
  scope: RequestScope,
): Promise<Meant> {
  const planId = await resolve(store, 'rate_plan', order.plan, { tenantId: 'any', scope })
  if (planId === null) throw badReference('rate_plan', 'is required')
  const query = store.db.selectFrom('rate_plan').where('id', '=', planId)
  const plan = await first(store, query.select(['name', 'currency', 'tenant_id', 'priced_by']))
  if (plan === undefined) throw notFound('Rate plan')
  if (order.kind === 'sold' && plan.priced_by === 'rn')
    throw conflict(
      'priced_by_routing_number',
      'The plan prices ported numbers by their routing number, which call records do not have',
    )
  const { now } = scope
  if (order.before <= order.from || order.from >= now)
    throw badRequest('The body is invalid', [
      { path: 'to', message: 'must be after `from`, which must be in the past' },
    ])
  return {
    kind: order.kind,
    rate_plan_id: planId,
    rate_plan: plan.name,
    tenant_id: plan.tenant_id,
    currency: plan.currency,
    from_at: order.from,
    before_at: Math.min(order.before, now),
    ...(await partiesOf(store, order, planId, scope)),
    prefix: order.prefix,
    priced_at: order.prices === 'now' ? now : null,
  }
}

/** A party that is named has this plan: the prices of another one are not its prices. */
async function partiesOf(
  store: Tables,
  { kind, customer, carrier }: ReratingOrder,
  planId: number,
  scope: RequestScope,
): Promise<Pick<Meant, 'customer_id' | 'carrier_id'>> {
  const customer_id = await resolve(store, 'customer', customer, { tenantId: 'any', scope })
  const carrier_id = await resolve(store, 'carrier', carrier, { tenantId: 'any', scope })
  if (kind === 'sold' && carrier_id !== null)
    throw badReference('carrier', 'is for calls that are bought')
  const plans = [
    ['customer', kind === 'sold' ? customer_id : null],
    ['carrier', carrier_id],
  ] as const
  for (const [table, id] of plans) {
    if (id === null) continue
    const query = store.db.selectFrom(table).select('rate_plan_id').where('id', '=', id)
    if ((await first(store, query))?.rate_plan_id !== planId)
      throw badReference(table, 'has another rate plan')
  }
  return { customer_id, carrier_id }
}

/** The process that works on a job, and until when others leave it alone. */
export interface ReratingClaim {
  readonly claimed_by: string
  readonly claimed_until: number
}

interface NewRerating {
  /** A part of the references of its ledger entries, which nobody can guess. */
  readonly ref: string
  readonly scope: RequestScope
  readonly claim: ReratingClaim
  /** Records of the period: `recordsIn`. */
  readonly total: number
}

/** Resolves with the id of the job. One at a time of each owner. */
export async function beginRerating(
  store: Tables,
  meant: Meant,
  { ref, scope, claim, total }: NewRerating,
): Promise<number> {
  return transaction(store, async () => {
    await refuseSecond(store, meant.tenant_id)
    const values = {
      ...meant,
      ref,
      total,
      state: 'rating' as const,
      position_at: meant.from_at,
      position_id: 0,
      started_by: scope.actor,
      started_at: scope.now,
      ended_at: null,
      undone_by: null,
      undone_at: null,
      ...claim,
    }
    return insert(store, store.db.insertInto('rerating').values(values).returning('id'))
  })
}

async function refuseSecond(store: Tables, tenantId: number | null): Promise<void> {
  const open = store.db
    .selectFrom('rerating')
    .select('id')
    .where('tenant_id', same(tenantId), tenantId)
    .where('state', 'not in', ['done', 'undone'])
    .limit(1)
  const found = await first(store, open)
  if (found !== undefined) throw underWay(found.id)
}

const underWay = (id: number): ApiError =>
  conflict('rerating_under_way', `Re-rating ${id} is under way: wait for its end`)

/** Later jobs of the plan build on this one. */
export async function beginUndo(store: Tables, id: number, scope: RequestScope): Promise<void> {
  await transaction(store, async () => {
    const job = await findRerating(store, id, scope)
    if (job.state === 'undone') throw conflict('already_undone', 'The re-rating is undone already')
    await refuseSecond(store, job.tenant_id)
    const later = store.db
      .selectFrom('rerating')
      .select('id')
      .where('kind', '=', job.kind)
      .where('rate_plan_id', '=', job.rate_plan_id)
      .where('id', '>', id)
      .where('state', '<>', 'undone')
      .where('from_at', '<', job.before_at)
      .where('before_at', '>', job.from_at)
      .orderBy('id', 'desc')
      .limit(1)
    const found = await first(store, later)
    if (found !== undefined)
      throw conflict('later_rerating', `Re-rating ${found.id} is later: undo it first`)
    if (job.parts > 0 && !(await isKept(store, id)))
      throw conflict('not_kept', 'What the re-rating has changed is no longer kept')
    const values = {
      state: 'undoing' as const,
      position_id: job.parts,
      undone_by: scope.actor,
      undone_at: scope.now,
    }
    await execute(store, store.db.updateTable('rerating').set(values).where('id', '=', id))
  })
}

async function isKept(store: Tables, id: number): Promise<boolean> {
  const query = store.db.selectFrom('rerating_part').select('part').where('rerating_id', '=', id)
  return (await first(store, query.limit(1))) !== undefined
}

export interface StoredRerating extends Omit<
  Selectable<ReratingTable>,
  'before_micros' | 'after_micros'
> {
  readonly before: string
  readonly after: string
}

export const jobColumns = [
  'id',
  'ref',
  'tenant_id',
  'kind',
  'rate_plan_id',
  'rate_plan',
  'currency',
  'from_at',
  'before_at',
  'customer_id',
  'carrier_id',
  'prefix',
  'priced_at',
  'state',
  'position_at',
  'position_id',
  'total',
  'looked_at',
  'calls',
  'changed',
  'without_rate',
  'unknown_number',
  'other_currency',
  'parts',
  'restored',
  'kept',
  'started_by',
  'started_at',
  'ended_at',
  'undone_by',
  'undone_at',
  'claimed_by',
  'claimed_until',
] as const

const shownJobs = (store: Tables, { tenantId }: Pick<RequestScope, 'tenantId'>) =>
  store.db
    .selectFrom('rerating')
    .select(jobColumns)
    .select([exactSum('before_micros').as('before'), exactSum('after_micros').as('after')])
    .$if(tenantId !== null, (rows) => rows.where('tenant_id', '=', tenantId))

/** 404: there is none in the scope. */
export async function findRerating(
  store: Tables,
  id: number,
  scope: Pick<RequestScope, 'tenantId'>,
): Promise<StoredRerating> {
  const row = await first(store, shownJobs(store, scope).where('id', '=', id))
  if (row === undefined) throw notFound('Re-rating')
  return row
}

export const listReratings = (
  store: Store,
  scope: RequestScope,
  planId: number | undefined,
  slice: { readonly limit: number; readonly offset: number },
) =>
  pageOf(
    store,
    shownJobs(store, scope)
      .$if(planId !== undefined, (rows) => rows.where('rate_plan_id', '=', planId ?? 0))
      .orderBy('id', 'desc'),
    slice,
  )

export interface CustomerDifference {
  readonly customer_id: number
  readonly name: string | null
  readonly calls: number
  readonly before: string
  readonly after: string
  readonly posted: string | null
}

/** The customers whose calls have changed most. */
export function differencesOfJob(
  store: Tables,
  id: number,
): Promise<readonly CustomerDifference[]> {
  const query = store.db
    .selectFrom('rerating_sum as sum')
    .leftJoin('customer', 'customer.id', 'sum.customer_id')
    .select(['sum.customer_id', 'customer.name', 'sum.calls'])
    .select([exactSum('sum.before_micros').as('before'), exactSum('sum.after_micros').as('after')])
    .select(exactSum('sum.posted_micros').as('posted'))
    .where('sum.rerating_id', '=', id)
    .orderBy(sql`abs(sum.after_micros - sum.before_micros)`, 'desc')
    .orderBy('sum.customer_id')
    .limit(MAX_DIFFERENCES)
  return all(store, query)
}

export async function namesOfCustomers(
  store: Tables,
  ids: readonly number[],
): Promise<ReadonlyMap<number, string>> {
  if (ids.length === 0) return new Map()
  const query = store.db.selectFrom('customer').select(['id', 'name']).where('id', 'in', ids)
  return new Map((await all(store, query)).map(({ id, name }) => [id, name]))
}
