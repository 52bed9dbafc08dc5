/** Rates: prices of prefixes (SPECIFICATION.md §13.1). A rate belongs to the tenant of its plan. */
import { type Selectable, sql } from 'kysely'
import { z } from 'zod'
import { fromFlag, toFlag } from '../../schema/columns.ts'
import type { RateTable } from '../../schema/tables/tenants.ts'
import type { Store } from '../../schema/storage/store.ts'
import { all, first } from '../../schema/sql/query.ts'
import type { RequestProblem } from '../http/api-error.ts'
import { quoted } from '../http/clean-text.ts'
import { money as amount, periodName, prefix, reference, time as moment } from '../http/fields.ts'
import { count, decimal } from '../http/view-fields.ts'
import { exactMoney, money, type Row, time } from '../http/field-columns.ts'
import * as field from '../http/field-table.ts'
import { refuseUncounted } from './braked.ts'
import { refuseUnknownPeriod } from './plan-periods.ts'
import { refuseOneMorePrice } from './dated-prices.ts'
import { patchOf } from './patch.ts'
import { badReference, either, resolve, tenantOf } from './references.ts'
import { type Definition, ResourceStore, type ViewOf } from './resource.ts'
import { rowWith } from './table-rows.ts'
import { everywhere, type RequestScope } from '../auth/tenants.ts'

/** Enough for currencies of small units, such as VND and IDR. */
const price = amount({ max: 1_000_000 })

/** 86400: a day. */
const seconds = z.int().max(86_400)

const pricePerMinute = { body: price, view: z.number(), stored: money }
const timeOfValidity = { body: moment, view: z.iso.datetime(), stored: time }

const fields = field.table(
  {
    id: field.id,
    rate_plan: field.required(field.asText(reference.nullish()), {
      isStoredElsewhere: true,
      example: 'retail',
    }),
    rate_plan_id: field.required({ body: reference.nullish(), view: z.int() }, { example: 1 }),
    tenant: field.written(reference.nullish(), {
      about: 'The tenant of the plan; needed where several tenants have a plan of this name.',
    }),
    prefix: field.required(field.asText(prefix), {
      about: 'Start of the called number; empty: every number.',
      example: '49',
    }),
    period: field.optional(field.asText(periodName), {
      about: 'Period of the plan in which it applies; null: whenever none with a price holds.',
    }),
    description: field.optional(field.text(200), { example: 'Germany' }),
    rate_per_minute: field.required(pricePerMinute, {
      column: 'rate_per_minute_micros',
      example: 0.1,
    }),
    rate_per_minute_exact: field.shown(decimal, {
      column: 'rate_per_minute_micros',
      stored: exactMoney,
      example: '0.10',
    }),
    connect_fee: field.of(pricePerMinute, {
      column: 'connect_fee_micros',
      default: 0,
      example: 0.4,
    }),
    connect_fee_exact: field.shown(decimal, {
      column: 'connect_fee_micros',
      stored: exactMoney,
      example: '0.40',
    }),
    first_increment: field.of(
      { body: seconds.min(0), view: count },
      {
        column: 'first_increment_seconds',
        default: 0,
        about: 'The least number of seconds that is charged.',
        example: 60,
      },
    ),
    first_rate_per_minute: field.required(
      { body: price.optional(), view: z.number(), stored: money },
      {
        column: 'first_rate_per_minute_micros',
        about: 'Price of the first increment; absent: `rate_per_minute`.',
        example: 0.2,
      },
    ),
    first_rate_per_minute_exact: field.shown(decimal, {
      column: 'first_rate_per_minute_micros',
      stored: exactMoney,
      example: '0.20',
    }),
    increment: field.of(
      { body: seconds.min(1), view: z.int().min(1) },
      {
        column: 'increment_seconds',
        default: 1,
        about: 'Seconds of each further step that is charged.',
      },
    ),
    blocked: field.of(field.yesOrNo, {
      column: 'is_blocked',
      default: false,
      about: 'Calls to this prefix are refused.',
    }),
    effective_from: field.optional(timeOfValidity, { column: 'effective_from_at' }),
    effective_to: field.optional(timeOfValidity, {
      column: 'effective_to_at',
      about: 'The first moment at which the rate no longer applies.',
    }),
  },
  { schemaId: 'Rate', first: ['id', 'rate_plan_id'] },
)

export const rateBody = fields.body

export type RateBody = z.output<typeof rateBody>

/** A rate of a seed file: one that is stored keeps what the file does not name. */
export const seedRateBody = patchOf(rateBody).extend({ prefix: rateBody.shape.prefix })

export type SeedRateBody = Partial<RateBody> & Pick<RateBody, 'prefix'>

export type RateView = ViewOf<typeof fields.view>

export const rates: Definition<typeof rateBody, typeof fields.view> = {
  noun: 'Rate',
  table: 'rate',
  path: '/rates',
  scope: 'rates',
  fields,
  hasOwnRoutes: true,
  joins: sql`JOIN rate_plan ON rate_plan.id = rate.rate_plan_id`,
  selected: sql`rate_plan.name AS rate_plan`,
  owner: 'rate_plan.tenant_id',
  search: ['rate.prefix', 'rate.description'],
  order: [
    'rate_plan.name',
    'rate_plan.id',
    'rate.prefix',
    sql`coalesce(rate.period, '')`,
    sql`coalesce(rate.effective_from_at, -1)`,
  ],
  limits: ['rates'],
  store: (deps) => new RateStore(rates, deps),
  async identify(rate, { store }) {
    const planId = await planOf(rate, everywhere, store)
    const effective_from_at = rate.effective_from ?? null
    const { prefix: start, period = null } = rate
    const identity = { rate_plan_id: planId, prefix: start, period, effective_from_at }
    return rowWith(store, 'rate', identity)
  },
  async check({ body: rate, before, scope, deps: { store } }) {
    const planId = await planOf(rate, scope, store, before?.rate_plan_id)
    for (const value of new Set([before?.rate_plan_id ?? planId, planId]))
      await refuseUncounted(store, { column: 'rate_plan_id', value }, 'caps', scope)
    if (rate.period != null && (before?.rate_plan_id !== planId || before.period !== rate.period))
      await refuseUnknownPeriod(store, planId, rate.period)
    if (before?.rate_plan_id !== planId || before.prefix !== rate.prefix)
      await refuseOneMorePrice(store, planId, rate.prefix)
    // They replace the columns of the table of fields: tables that are imported use the same ones.
    return { rate_plan_id: planId, ...rateColumns(rate) }
  },
  removing: ({ rate_plan_id: value }, scope, { store }) =>
    refuseUncounted(store, { column: 'rate_plan_id', value }, 'caps', scope),
  async follow({ ocs }, { before, after }) {
    if (before === undefined && after === undefined) return ocs?.reloadRates()
    for (const rate of [before, after])
      if (rate !== undefined) await ocs?.reloadPrefix(rate.rate_plan_id, rate.prefix)
  },
  described: {
    tag: 'Rates',
    body: { rate_plan: 'retail', prefix: '49', rate_per_minute: '0.10', connect_fee: '0.40' },
    patch: { rate_per_minute: '0.12' },
  },
}

class RateStore extends ResourceStore<typeof rateBody, typeof fields.view> {
  protected override matching({ rate_plan: plan, rate_plan_id: planId }: Row) {
    return [
      ...(planId === undefined ? [] : [sql<boolean>`rate.rate_plan_id = ${planId}`]),
      ...(plan === undefined ? [] : [sql<boolean>`rate_plan.name = ${plan}`]),
    ]
  }

  /** Replaces the document that the table of fields gives, as `rateColumns` its columns. */
  protected override documentOf(row: Row): Row {
    return rateDocument(row as Row & Selectable<RateTable>)
  }
}

/** A rate in a sentence: `for "49" of the plan "retail"`. */
export async function rateName(
  { rate_plan_id: planId, prefix: start }: Row,
  store: Store,
): Promise<string> {
  const query = store.db.selectFrom('rate_plan').select('name').where('id', '=', Number(planId))
  const plan = (await first(store, query))?.name ?? String(planId)
  const numbers = start === '' ? 'all other numbers' : quoted(String(start))
  return `for ${numbers} of the plan ${quoted(plan)}`
}

async function planOf(
  rate: RateBody,
  scope: RequestScope,
  store: Store,
  current?: number,
): Promise<number> {
  const plan = either('rate_plan', rate.rate_plan, rate.rate_plan_id)
  const tenantId = rate.tenant == null ? 'any' : await tenantOf(store, rate.tenant, scope)
  const id = await resolve(store, 'rate_plan', plan, { tenantId, scope, current })
  if (id === null) throw badReference('rate_plan', 'is required')
  const isOfTenant =
    tenantId === 'any' ||
    (await rowWith(store, 'rate_plan', { id, tenant_id: tenantId })) !== undefined
  if (isOfTenant) return id
  throw badReference('rate_plan', `the tenant has no rate_plan ${JSON.stringify(plan)}`)
}

/**
 * Rates of a plan with an id above `after`, in the order of ids: it may read those of all plans, so
 * it runs inside `readApart`.
 */
export function ratesAfter(
  store: Store,
  planId: number,
  after: number,
  limit: number,
): Promise<StoredRate[]> {
  // The plus keeps the databases from the index of the plan, which is in another order: each page
  // would sort them all.
  const isOfPlan = sql<boolean>`+rate.rate_plan_id = ${planId}`
  const query = store.db
    .selectFrom('rate')
    .selectAll('rate')
    .where(isOfPlan)
    .where('rate.id', '>', after)
    .orderBy('rate.id')
    .limit(limit)
  return all(store, query)
}

export type StoredRate = Selectable<RateTable>

/** A stored rate as a body. */
export const rateDocument = (row: Selectable<RateTable>): RateBody => ({
  rate_plan_id: row.rate_plan_id,
  prefix: row.prefix,
  period: row.period,
  description: row.description,
  rate_per_minute: row.rate_per_minute_micros,
  connect_fee: row.connect_fee_micros,
  first_increment: row.first_increment_seconds,
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
export function rateProblem(body: RateTerms): RequestProblem | undefined {
  const { effective_from: from, effective_to: to } = body
  if (from != null && to != null && to <= from)
    return { path: 'effective_to', message: 'is not after effective_from' }
  const firstRatePrice = body.first_rate_per_minute ?? body.rate_per_minute
  if (body.first_increment === 0 && firstRatePrice !== body.rate_per_minute)
    return { path: 'first_rate_per_minute', message: 'has no effect without first_increment' }
  return undefined
}

/** Throws 400 for a rate that contradicts itself. */
export function rateColumns(body: RateTerms) {
  const problem = rateProblem(body)
  if (problem !== undefined) throw badReference(problem.path, problem.message)
  return {
    prefix: body.prefix,
    period: body.period ?? null,
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
