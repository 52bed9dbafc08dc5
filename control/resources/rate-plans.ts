/** Rate plans: lists of prices in one currency (SPECIFICATION.md §13.1). */
import { exampleTime, moment } from '../http/view-fields.ts'
import { z } from 'zod'
import type { Store } from '../../schema/storage/store.ts'
import { ApiError } from '../http/api-error.ts'
import { currency, name, reference } from '../http/fields.ts'
import { refuseUncounted } from './braked.ts'
import type { Definition, ViewOf } from './resource.ts'
import { rowWith } from './table-rows.ts'

const body = z.strictObject({
  name,
  tenant: reference.nullish(),
  currency: currency.default('USD'),
  decimals: z.int().min(0).max(6).default(4).describe('Prices are rounded up to these decimals.'),
})

const view = z
  .strictObject({
    id: z.int(),
    name: z.string(),
    tenant: z.string().nullable(),
    currency: z.string().describe('ISO 4217.'),
    decimals: z.int(),
    created_at: moment,
  })
  .meta({ id: 'RatePlan' })

export type RatePlanView = ViewOf<typeof view>

export const ratePlans: Definition<typeof body, typeof view> = {
  noun: 'Rate plan',
  table: 'rate_plan',
  path: '/rate-plans',
  scope: 'rates',
  kind: 'rate_plan',
  body,
  view,
  search: ['rate_plan.name'],
  order: ['rate_plan.name'],
  limits: ['rate_plans'],
  async check({ body: plan, before, scope, deps: { store } }) {
    if (before === undefined) return undefined
    if (before.currency !== plan.currency) await refuseIfUsed(store, before.id)
    // Fewer decimals make a price of another one.
    if (before.decimals !== plan.decimals)
      await refuseUncounted(store, { column: 'rate_plan_id', value: before.id }, 'caps', scope)
  },
  async follow({ ocs }, { id }) {
    await ocs?.reloadPlan(id)
  },
  /** The rates of a plan are in no change, so nothing brings them back. */
  async refuseUndoing(id, { store }) {
    if ((await rowWith(store, 'rate', { rate_plan_id: id })) === undefined) return
    throw new ApiError(
      409,
      'in_use',
      'The plan has rates, which would be lost. Nothing was changed: delete the plan if ' +
        'that is wanted',
    )
  },
  described: {
    tag: 'Rates',
    example: {
      id: 1,
      name: 'retail',
      tenant: null,
      currency: 'USD',
      decimals: 4,
      created_at: exampleTime,
    },
    body: { name: 'retail', currency: 'USD' },
    patch: { decimals: 2 },
  },
}

/** 409 while wallets of customers, or prices of carriers, are in the currency of the plan. */
async function refuseIfUsed(store: Store, id: number): Promise<void> {
  if ((await rowWith(store, 'customer', { rate_plan_id: id })) !== undefined)
    throw new ApiError(409, 'in_use', 'Customers of this plan have wallets in its currency')
  if ((await rowWith(store, 'carrier', { rate_plan_id: id })) !== undefined)
    throw new ApiError(409, 'in_use', 'Carriers charge by this plan, in its currency')
}
