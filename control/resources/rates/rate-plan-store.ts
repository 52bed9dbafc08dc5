/** Rate plans, as rows. */
import type { RequestScope } from '../../auth/tenants.ts'
import { refuseUncounted } from '../guards/braked.ts'
import type { Selectable } from 'kysely'
import { timeToText } from '../../../schema/columns.ts'
import type { RatePlanTable } from '../../../schema/database.ts'
import type { Store } from '../../../schema/open.ts'
import { all, execute, first, insert } from '../../../schema/sql/query.ts'
import { ApiError } from '../../http/api-error.ts'
import { identified, tenantOf } from '../references.ts'
import type { Resource, Rows, Slice } from '../resource.ts'
import { contains, write } from '../../http/rows.ts'
import { writeWithinLimits } from '../../auth/tenant-limits.ts'
import { ratePlanBody, type RatePlanBody } from './rate-body.ts'

interface Row extends Selectable<RatePlanTable> {
  readonly slug: string | null
}

export interface RatePlanView {
  readonly id: number
  readonly name: string
  readonly tenant: string | null
  readonly currency: string
  readonly decimals: number
  readonly created_at: string
}

export class RatePlanStore implements Resource<typeof ratePlanBody, RatePlanView> {
  readonly noun = 'Rate plan'
  readonly body = ratePlanBody
  readonly #store: Store

  constructor(store: Store) {
    this.#store = store
  }

  async list(scope: RequestScope, { limit, offset, search }: Slice): Promise<Rows<RatePlanView>> {
    const matching = this.#visible(scope).where((row) => contains(row, ['rate_plan.name'], search))
    const total = await first(
      this.#store,
      matching.select((row) => row.fn.countAll<number>().as('n')),
    )
    const rows = matching
      .selectAll('rate_plan')
      .select('tenant.slug')
      .orderBy('rate_plan.name')
      .limit(limit)
      .offset(offset)
    return { rows: (await all(this.#store, rows)).map(viewOf), total: total?.n ?? 0 }
  }

  async find(scope: RequestScope, id: number): Promise<RatePlanView | undefined> {
    const query = this.#visible(scope)
      .selectAll('rate_plan')
      .select('tenant.slug')
      .where('rate_plan.id', '=', id)
    const row = await first(this.#store, query)
    return row === undefined ? undefined : viewOf(row)
  }

  async identify(body: RatePlanBody): Promise<number | undefined> {
    return identified(this.#store, 'rate_plan', body)
  }

  async document(scope: RequestScope, id: number): Promise<RatePlanBody | undefined> {
    const plan = await this.find(scope, id)
    if (plan === undefined) return undefined
    const { id: _id, created_at: _at, ...document } = plan
    return document
  }

  async insert(body: RatePlanBody, scope: RequestScope): Promise<number> {
    const { name, currency, decimals } = body
    return writeWithinLimits(this.#store, scope, ['rate_plans'], async () =>
      insert(
        this.#store,
        this.#store.db
          .insertInto('rate_plan')
          .values({
            name,
            currency,
            decimals,
            tenant_id: await tenantOf(this.#store, body.tenant, scope),
            created_at: scope.now,
          })
          .returning('id'),
      ),
    )
  }

  /** Refuses a new currency while wallets of customers, or prices of carriers, are in the old one. */
  async replace(id: number, body: RatePlanBody, scope: RequestScope): Promise<void> {
    const { name, currency, decimals } = body
    await write(this.#store, async () => {
      const before = await this.find(scope, id)
      if (before?.currency !== currency) await this.#refuseIfUsed(id)
      // Fewer decimals make a price of another one.
      if (before?.decimals !== decimals)
        await refuseUncounted(this.#store, { column: 'rate_plan_id', value: id }, 'caps', scope)
      await execute(
        this.#store,
        this.#store.db
          .updateTable('rate_plan')
          .set({
            name,
            currency,
            decimals,
            tenant_id: await tenantOf(this.#store, body.tenant, scope),
          })
          .where('id', '=', id),
      )
    })
  }

  /** Removes the plan and its rates; 409 while a customer or a carrier has it. */
  async remove(id: number, scope: RequestScope): Promise<'removed' | 'absent'> {
    if ((await this.find(scope, id)) === undefined) return 'absent'
    await write(this.#store, () =>
      execute(this.#store, this.#store.db.deleteFrom('rate_plan').where('id', '=', id)),
    )
    return 'removed'
  }

  /** Those of a list of prices are in no change: nothing brings them back. */
  async refuseIfPriced(id: number): Promise<void> {
    const rates = this.#store.db.selectFrom('rate').select('id').where('rate_plan_id', '=', id)
    if ((await first(this.#store, rates.limit(1))) !== undefined)
      throw new ApiError(
        409,
        'in_use',
        'The plan has rates, which would be lost. Nothing was changed: delete the plan if that is wanted',
      )
  }

  async #refuseIfUsed(id: number): Promise<void> {
    const customers = this.#store.db.selectFrom('customer').select('id')
    if ((await first(this.#store, customers.where('rate_plan_id', '=', id).limit(1))) !== undefined)
      throw new ApiError(409, 'in_use', 'Customers of this plan have wallets in its currency')
    const carriers = this.#store.db.selectFrom('carrier').select('id')
    if ((await first(this.#store, carriers.where('rate_plan_id', '=', id).limit(1))) !== undefined)
      throw new ApiError(409, 'in_use', 'Carriers charge by this plan, in its currency')
  }

  #visible({ tenantId }: RequestScope) {
    return this.#store.db
      .selectFrom('rate_plan')
      .leftJoin('tenant', 'tenant.id', 'rate_plan.tenant_id')
      .$if(tenantId !== null, (query) => query.where('rate_plan.tenant_id', '=', tenantId))
  }
}

const viewOf = (row: Row): RatePlanView => ({
  id: row.id,
  name: row.name,
  tenant: row.slug,
  currency: row.currency,
  decimals: row.decimals,
  created_at: timeToText(row.created_at),
})
