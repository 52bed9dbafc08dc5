/** Rate plans: lists of prices in one currency (SPECIFICATION.md §13.1). */
import { z } from 'zod'
import { roundings } from '../../schema/contracts/tariff.ts'
import type { Store } from '../../schema/storage/store.ts'
import { ApiError } from '../http/api-error.ts'
import { currency } from '../http/fields.ts'
import { refuseUncounted } from './braked.ts'
import { deckMappingDocument } from './decks/deck-mapping.ts'
import { json } from '../http/field-columns.ts'
import * as field from '../http/field-table.ts'
import { lossFields, lossWriter } from './loss-fields.ts'
import { type Definition, ResourceStore, type ViewOf } from './resource.ts'
import { rowWith } from './table-rows.ts'

const fields = field.table(
  {
    id: field.id,
    name: field.required(field.name, { example: 'retail' }),
    tenant: field.tenant(),
    currency: field.of(
      { body: currency, view: z.string().describe('ISO 4217.') },
      { default: 'USD' },
    ),
    decimals: field.of(field.integer(0, 6), {
      default: 4,
      about: 'Prices are rounded to these decimals.',
    }),
    rounding: field.of(field.oneOf(roundings), {
      default: 'up',
      about:
        'How the exact price of a call becomes one of these decimals. `half_up`: a half of ' +
        'the last decimal or more goes up.',
    }),
    priced_by: field.of(field.oneOf(['number', 'rn']), {
      default: 'number',
      about:
        'Price of a call to a ported number: `number`, that of the dialled number; `rn`, that of ' +
        'the routing number (RFC 4694) that the INVITE has.',
    }),
    deck_mapping: field.optional(
      { body: deckMappingDocument, view: deckMappingDocument, stored: json },
      { about: 'How the columns and cells of its decks are read (`POST /rates/decks`).' },
    ),
    ...lossFields('Customers and outbound routes that say something themselves go before.'),
    created_at: field.createdAt,
  },
  { schemaId: 'RatePlan' },
)

export type RatePlanView = ViewOf<typeof fields.view>

export const ratePlans: Definition<typeof fields.body, typeof fields.view> = {
  noun: 'Rate plan',
  table: 'rate_plan',
  path: '/rate-plans',
  scope: 'rates',
  fields,
  hasOwnRoutes: true,
  search: ['rate_plan.name'],
  order: ['rate_plan.name'],
  limits: ['rate_plans'],
  store: (deps) => new RatePlanStore(ratePlans, deps),
  async check(writing) {
    const { body: plan, before, scope, deps } = writing
    const { store } = deps
    const losses = await lossWriter('rate_plan', writing)
    if (before === undefined) return losses
    if (before.currency !== plan.currency) await refuseIfUsed(store, before.id)
    // Fewer decimals, or another rounding, make a price of another one.
    if (before.decimals !== plan.decimals || before.rounding !== plan.rounding)
      await refuseUncounted(store, { column: 'rate_plan_id', value: before.id }, 'caps', scope)
    return losses
  },
  async follow({ ocs }, { id }) {
    await ocs?.reloadPlan(id)
  },
  described: {
    tag: 'Rates',
    body: { name: 'retail', currency: 'USD' },
    patch: { decimals: 2 },
  },
}

class RatePlanStore extends ResourceStore<typeof fields.body, typeof fields.view> {
  /** The rates of a plan are in no change, so nothing brings them back. */
  override async refuseUndoing(planId: number): Promise<void> {
    if ((await rowWith(this.deps.store, 'rate', { rate_plan_id: planId })) === undefined) return
    throw new ApiError(
      409,
      'in_use',
      'The plan has rates, which would be lost. Nothing was changed: delete the plan if ' +
        'that is wanted',
    )
  }
}

/** 409 while wallets of customers, or prices of carriers, are in the currency of the plan. */
async function refuseIfUsed(store: Store, id: number): Promise<void> {
  if ((await rowWith(store, 'customer', { rate_plan_id: id })) !== undefined)
    throw new ApiError(409, 'in_use', 'Customers of this plan have wallets in its currency')
  if ((await rowWith(store, 'carrier', { rate_plan_id: id })) !== undefined)
    throw new ApiError(409, 'in_use', 'Carriers charge by this plan, in its currency')
}
