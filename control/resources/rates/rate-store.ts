/** Rates, as rows. A rate belongs to the tenant of its plan. */
import { everywhere, type RequestScope } from '../../auth/tenants.ts'
import { sql, type Selectable, type SqlBool } from 'kysely'
import {
  fromFlag,
  moneyToDecimal,
  moneyToNumber,
  timeToText,
  toFlag,
} from '../../../schema/columns.ts'
import type { RateTable } from '../../../schema/database.ts'
import type { Store } from '../../../schema/open.ts'
import { all, execute, first, insert } from '../../../schema/sql/query.ts'
import type { ErrorDetail } from '../../http/api-error.ts'
import { badReference, either, resolve, tenantOf } from '../references.ts'
import { refuseUncounted } from '../guards/braked.ts'
import type { Resource, Rows, Slice } from '../resource.ts'
import { contains, write } from '../../http/rows.ts'
import { writeWithinLimits } from '../../auth/tenant-limits.ts'
import { rateBody, type RateBody } from './rate-body.ts'

export interface RateRow extends Selectable<RateTable> {
  readonly rate_plan: string
}

export interface RateView {
  readonly id: number
  readonly rate_plan_id: number
  readonly rate_plan: string
  readonly prefix: string
  readonly description: string | null
  readonly rate_per_minute: number
  readonly rate_per_minute_exact: string
  readonly connect_fee: number
  readonly connect_fee_exact: string
  readonly first_increment: number
  readonly first_rate_per_minute: number
  readonly first_rate_per_minute_exact: string
  readonly increment: number
  readonly blocked: boolean
  readonly effective_from: string | null
  readonly effective_to: string | null
}

/** Limited to a plan, if one is named. */
export interface RateSlice extends Slice {
  readonly rate_plan?: string | undefined
  readonly rate_plan_id?: number | undefined
}

export class RateStore implements Resource<typeof rateBody, RateView> {
  readonly noun = 'Rate'
  readonly body = rateBody
  readonly #store: Store

  constructor(store: Store) {
    this.#store = store
  }

  async list(
    scope: RequestScope,
    { limit, offset, search, ...plan }: RateSlice,
  ): Promise<Rows<RateView>> {
    const matching = this.#visible(scope)
      .where((row) => contains(row, ['rate.prefix', 'rate.description'], search))
      .$if(plan.rate_plan_id !== undefined, (query) =>
        query.where('rate.rate_plan_id', '=', plan.rate_plan_id ?? 0),
      )
      .$if(plan.rate_plan !== undefined, (query) =>
        query.where('rate_plan.name', '=', plan.rate_plan ?? ''),
      )
    const total = await first(
      this.#store,
      matching.select((row) => row.fn.countAll<number>().as('n')),
    )
    const rows = matching
      .selectAll('rate')
      .select('rate_plan.name as rate_plan')
      .orderBy('rate_plan.name')
      .$if(scope.tenantId === null, (query) => query.orderBy('rate_plan.id'))
      .orderBy('rate.prefix')
      .orderBy(sql`coalesce(rate.effective_from_at, -1)`)
      .limit(limit)
      .offset(offset)
    return { rows: (await all(this.#store, rows)).map(rateView), total: total?.n ?? 0 }
  }

  async find(scope: RequestScope, id: number): Promise<RateView | undefined> {
    const row = await this.#row(scope, id)
    return row === undefined ? undefined : rateView(row)
  }

  /** Rates of a plan with an id above `after`, in the order of ids: it may read those of all plans, so it runs inside `readApart`. */
  page(planId: number, after: number, limit: number): Promise<RateRow[]> {
    const isOfPlan = sql<SqlBool>`+rate.rate_plan_id = ${planId}`
    const query = this.#store.db
      .selectFrom('rate')
      .innerJoin('rate_plan', 'rate_plan.id', 'rate.rate_plan_id')
      .selectAll('rate')
      .select('rate_plan.name as rate_plan')
      // The plus keeps the databases from the index of the plan, which is in another order: each page would sort them all.
      .where(isOfPlan)
      .where('rate.id', '>', after)
      .orderBy('rate.id')
      .limit(limit)
    return all(this.#store, query)
  }

  async identify(body: RateBody): Promise<number | undefined> {
    const planId = await this.#planOf(body, everywhere)
    const query = this.#store.db
      .selectFrom('rate')
      .select('id')
      .where('rate_plan_id', '=', planId)
      .where('prefix', '=', body.prefix)
      .where(sql`coalesce(effective_from_at, -1)`, '=', body.effective_from ?? -1)
    return (await first(this.#store, query))?.id
  }

  async document(scope: RequestScope, id: number): Promise<RateBody | undefined> {
    const row = await this.#row(scope, id)
    return row === undefined ? undefined : rateDocument(row)
  }

  async insert(body: RateBody, scope: RequestScope): Promise<number> {
    return writeWithinLimits(this.#store, scope, ['rates'], async () => {
      const rate_plan_id = await this.#planOf(body, scope)
      await refusePricesCounted(this.#store, rate_plan_id, scope)
      return insert(
        this.#store,
        this.#store.db
          .insertInto('rate')
          .values({ rate_plan_id, ...rateColumns(body) })
          .returning('id'),
      )
    })
  }

  async replace(id: number, body: RateBody, scope: RequestScope): Promise<void> {
    await write(this.#store, async () => {
      const before = (await this.#row(scope, id))?.rate_plan_id
      const rate_plan_id = await this.#planOf(body, scope, before)
      for (const plan of new Set([before ?? rate_plan_id, rate_plan_id]))
        await refusePricesCounted(this.#store, plan, scope)
      await execute(
        this.#store,
        this.#store.db
          .updateTable('rate')
          .set({ rate_plan_id, ...rateColumns(body) })
          .where('id', '=', id),
      )
    })
  }

  async remove(id: number, scope: RequestScope): Promise<'removed' | 'absent'> {
    const row = await this.#row(scope, id)
    if (row === undefined) return 'absent'
    return write(this.#store, async () => {
      await refusePricesCounted(this.#store, row.rate_plan_id, scope)
      await execute(this.#store, this.#store.db.deleteFrom('rate').where('id', '=', id))
      return 'removed' as const
    })
  }

  async #planOf(body: RateBody, scope: RequestScope, current?: number): Promise<number> {
    const plan = either('rate_plan', body.rate_plan, body.rate_plan_id)
    const tenantId = body.tenant == null ? 'any' : await tenantOf(this.#store, body.tenant, scope)
    const id = await resolve(this.#store, 'rate_plan', plan, { tenantId, scope }, current)
    if (id === null) throw badReference('rate_plan', 'is required')
    if (tenantId !== 'any' && (await this.#tenantOfPlan(id)) !== tenantId)
      throw badReference('rate_plan', `the tenant has no rate_plan ${JSON.stringify(plan)}`)
    return id
  }

  async #tenantOfPlan(id: number): Promise<number | null | undefined> {
    const plans = this.#store.db.selectFrom('rate_plan').select('tenant_id')
    return (await first(this.#store, plans.where('id', '=', id)))?.tenant_id
  }

  async #row(scope: RequestScope, id: number): Promise<RateRow | undefined> {
    const query = this.#visible(scope)
      .selectAll('rate')
      .select('rate_plan.name as rate_plan')
      .where('rate.id', '=', id)
    return first(this.#store, query)
  }

  #visible({ tenantId }: RequestScope) {
    return this.#store.db
      .selectFrom('rate')
      .innerJoin('rate_plan', 'rate_plan.id', 'rate.rate_plan_id')
      .$if(tenantId !== null, (query) => query.where('rate_plan.tenant_id', '=', tenantId))
  }
}

/** A stored rate as a body. */
export const rateDocument = (row: Selectable<RateTable>): RateBody => ({
  rate_plan_id: row.rate_plan_id,
  prefix: row.prefix,
  description: row.description,
  rate_per_minute: row.rate_per_minute_micros,
  connect_fee: row.connect_fee_micros,
  first_increment: row.first_increment_seconds,
  // Absent, it follows the rate.
  first_rate_per_minute:
    row.first_rate_per_minute_micros === row.rate_per_minute_micros
      ? undefined
      : row.first_rate_per_minute_micros,
  increment: row.increment_seconds,
  blocked: fromFlag(row.is_blocked),
  effective_from: row.effective_from_at,
  effective_to: row.effective_to_at,
})

type RateTerms = Omit<RateBody, 'rate_plan' | 'rate_plan_id'>

/** A contradiction in a rate; undefined: there is none. */
export function rateProblem(body: RateTerms): ErrorDetail | undefined {
  const { effective_from: from, effective_to: to } = body
  if (from != null && to != null && to <= from)
    return { path: 'effective_to', message: 'is not after effective_from' }
  const firstRate = body.first_rate_per_minute ?? body.rate_per_minute
  if (body.first_increment === 0 && firstRate !== body.rate_per_minute)
    return { path: 'first_rate_per_minute', message: 'has no effect without first_increment' }
  return undefined
}

/** Throws 400 for a rate that contradicts itself. */
export function rateColumns(body: RateTerms) {
  const problem = rateProblem(body)
  if (problem !== undefined) throw badReference(problem.path, problem.message)
  return {
    prefix: body.prefix,
    description: body.description ?? null,
    rate_per_minute_micros: body.rate_per_minute,
    connect_fee_micros: body.connect_fee,
    first_increment_seconds: body.first_increment,
    first_rate_per_minute_micros: body.first_rate_per_minute ?? body.rate_per_minute,
    increment_seconds: body.increment,
    is_blocked: toFlag(body.blocked),
    effective_from_at: body.effective_from ?? null,
    effective_to_at: body.effective_to ?? null,
  }
}

const rateView = (row: RateRow): RateView => ({
  id: row.id,
  rate_plan_id: row.rate_plan_id,
  rate_plan: row.rate_plan,
  prefix: row.prefix,
  description: row.description,
  rate_per_minute: moneyToNumber(row.rate_per_minute_micros),
  rate_per_minute_exact: moneyToDecimal(row.rate_per_minute_micros),
  connect_fee: moneyToNumber(row.connect_fee_micros),
  connect_fee_exact: moneyToDecimal(row.connect_fee_micros),
  first_increment: row.first_increment_seconds,
  first_rate_per_minute: moneyToNumber(row.first_rate_per_minute_micros),
  first_rate_per_minute_exact: moneyToDecimal(row.first_rate_per_minute_micros),
  increment: row.increment_seconds,
  blocked: fromFlag(row.is_blocked),
  effective_from: row.effective_from_at === null ? null : timeToText(row.effective_from_at),
  effective_to: row.effective_to_at === null ? null : timeToText(row.effective_to_at),
})

const refusePricesCounted = (store: Store, planId: number, scope: RequestScope): Promise<void> =>
  refuseUncounted(store, { column: 'rate_plan_id', value: planId }, 'caps', scope)
