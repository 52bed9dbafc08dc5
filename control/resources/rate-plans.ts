/** Rate plans: lists of prices in one currency (SPECIFICATION.md §13.1). */
import { isDeepStrictEqual } from 'node:util'
import { z } from 'zod'
import { priceChanges, roundings } from '../../schema/contracts/tariff.ts'
import {
  dayNames,
  holidayProblem,
  MAX_HOLIDAYS,
  MAX_PERIOD_HOURS,
  MAX_PERIODS,
  periodNames,
  periodProblem,
} from '../../schema/rules/price-periods.ts'
import { all } from '../../schema/sql/query.ts'
import type { Store } from '../../schema/storage/store.ts'
import { ApiError } from '../http/api-error.ts'
import { currency, periodName } from '../http/fields.ts'
import { refuseUncounted } from './braked.ts'
import { deckMappingDocument } from './decks/deck-mapping.ts'
import { json, list } from '../http/field-columns.ts'
import { quoted } from '../http/clean-text.ts'
import * as field from '../http/field-table.ts'
import { lossFields, lossWriter } from './loss-fields.ts'
import { type Definition, ResourceStore, type ViewOf } from './resource.ts'
import { rowWith } from './table-rows.ts'

/** `HH:MM`. */
const clock = z.string().regex(/^(?:[01]\d|2[0-3]):[0-5]\d$/, 'must be such as "08:00"')

const days = z.enum(dayNames)

const period = z
  .strictObject({
    name: periodName,
    days: z.array(days).min(1).max(dayNames.length),
    from: clock.default('00:00'),
    to: z.union([clock, z.literal('24:00')]).default('24:00'),
  })
  .superRefine((hours, context) => {
    const message = periodProblem(hours)
    if (message !== undefined) context.addIssue({ code: 'custom', message })
  })

const periods = z
  .array(period)
  .max(MAX_PERIOD_HOURS)
  .refine((all) => periodNames(all).length <= MAX_PERIODS, `has at most ${MAX_PERIODS} names`)

const periodView = z
  .strictObject({ name: z.string(), days: z.array(days), from: z.string(), to: z.string() })
  .meta({ id: 'PricePeriod' })

const holidays = z
  .array(
    z.string().superRefine((day, context) => {
      const message = holidayProblem(day)
      if (message !== undefined) context.addIssue({ code: 'custom', message })
    }),
  )
  .max(MAX_HOLIDAYS)
  .refine((all) => new Set(all).size === all.length, 'names a day twice')

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
    time_zone: field.optional(field.timeZone, {
      about:
        'IANA name of the zone of its periods, holidays and deck dates; null: that of its ' +
        'tenant, else UTC. Periods are then those of the zone of a customer that names one.',
    }),
    periods: field.of(
      { body: periods, view: z.array(periodView), stored: list },
      {
        default: [],
        about:
          'Hours with prices of their own. Several of one name are one period; where two hold, ' +
          'the first with a price counts. A rate without `period` is the price otherwise.',
      },
    ),
    holidays: field.of(
      { body: holidays, view: z.array(z.string()), stored: list },
      {
        default: [],
        about: 'Days of a year (`2026-12-25`) or of each (`12-25`): `holiday` in `days`.',
      },
    ),
    price_change: field.of(field.oneOf(priceChanges), {
      default: 'hold',
      about:
        'When a period begins during a call: `hold`, the price of the answer stays; `change`, ' +
        'increments that begin then have the new one.',
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
  found: {
    title: 'rate_plan.name',
    beside: ['rate_plan.currency'],
    starts: ['rate_plan.name'],
    screen: 'rate-plans',
    page: 'rate_plan.id',
    isOfBilling: true,
  },
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
    await refuseUsedPeriods(store, before, plan.periods)
    // Fewer decimals, another rounding or other hours make a price of another one.
    if (
      !isDeepStrictEqual(
        pricing.map((name) => before[name]),
        pricing.map((name) => plan[name]),
      )
    )
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

/** Fields by which a stored price becomes the price of a call. */
const pricing = [
  'decimals',
  'rounding',
  'time_zone',
  'periods',
  'holidays',
  'price_change',
] as const

/** 409 while wallets of customers, or prices of carriers, are in the currency of the plan. */
async function refuseIfUsed(store: Store, id: number): Promise<void> {
  if ((await rowWith(store, 'customer', { rate_plan_id: id })) !== undefined)
    throw new ApiError(409, 'in_use', 'Customers of this plan have wallets in its currency')
  if ((await rowWith(store, 'carrier', { rate_plan_id: id })) !== undefined)
    throw new ApiError(409, 'in_use', 'Carriers charge by this plan, in its currency')
}

/** 409 while rates are in a period that the plan would not have any more. */
async function refuseUsedPeriods(
  store: Store,
  { id, periods: before }: Pick<RatePlanView, 'id' | 'periods'>,
  after: RatePlanView['periods'],
): Promise<void> {
  const kept = periodNames(after)
  const gone = periodNames(before).filter((name) => !kept.includes(name))
  if (gone.length === 0) return
  const query = store.db
    .selectFrom('rate')
    .select(['period', 'prefix'])
    .where('rate_plan_id', '=', id)
    .where('period', 'in', gone)
    .limit(1)
  const [rate] = await all(store, query)
  if (rate === undefined) return
  const name = quoted(rate.period ?? '')
  throw new ApiError(
    409,
    'in_use',
    `Rates are in the period ${name}, such as that of ${quoted(rate.prefix)}: remove them first`,
  )
}
