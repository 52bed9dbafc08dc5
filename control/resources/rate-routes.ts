/** `/rate-plans` and `/rates`: prices, their import, export and look-up. */
import type { ChangeDeps } from '../changes/kinds.ts'
import { Hono, type Context } from 'hono'
import { z } from 'zod'
import { timeToText, moneyToDecimal, moneyToNumber } from '../../schema/columns.ts'
import type { OcsPort, Quote } from '../../schema/contracts/charging.ts'
import { type PriceChange, roundings } from '../../schema/contracts/tariff.ts'
import { first, readApart } from '../../schema/sql/query.ts'
import type { Store } from '../../schema/storage/store.ts'
import { requires } from '../auth/requires.ts'
import { ApiError } from '../http/api-error.ts'
import { readBody } from '../http/body.ts'
import type { ControlEnv } from '../http/control-env.ts'
import { ok, queryId, queryInteger } from '../http/envelope.ts'
import { validate, describeRoute } from '../http/validate.ts'
import { phoneNumber, queryTime } from '../http/fields.ts'
import { deckRoutes } from './decks/deck-routes.ts'
import { reratingRoutes } from './reratings/rerating-routes.ts'
import type { Reratings } from './reratings/reratings.ts'
import { followRates } from './follow-rates.ts'
import { resourceRoutes } from './resource-routes.ts'
import { csvLine } from './csv-table.ts'
import { rateCells, rateCsvColumns } from './rate-import.ts'
import type { RateOutcome, RateWork } from './import-rates.ts'
import type { RateImports } from './rate-imports.ts'
import { planFor } from './rate-plan-reference.ts'
import { resolve } from './references.ts'
import { type RequestScope, requestScope } from '../auth/tenants.ts'
import { ratePlans } from './rate-plans.ts'
import { rates, ratesAfter, type StoredRate } from './rates.ts'
import { count, decimal, exampleTime, moment, timeOrNull } from '../http/view-fields.ts'
import { data, text } from '../http/operation.ts'

export const amount = z.number()

export const currency = z.string().describe('ISO 4217.')

export const priceView = z
  .strictObject({
    number: z.string(),
    at: moment,
    rate_plan_id: z.int().optional().describe('Not shown to customers.'),
    prefix: z.string(),
    currency,
    blocked: z.boolean(),
    period: z.string().nullable().describe('Period of the plan in which it applies.'),
    rate_per_minute: amount,
    rate_per_minute_exact: decimal,
    first_rate_per_minute: amount,
    first_increment: count,
    increment: z.int(),
    price_changes: z
      .array(
        z.strictObject({
          after_seconds: count,
          period: z.string().nullable(),
          rate_per_minute_exact: decimal,
          increment: z.int(),
        }),
      )
      .describe(
        'Prices that follow when the call is answered at `at`, of a plan that changes them.',
      ),
    effective_from: moment.nullable(),
    effective_to: moment.nullable(),
    duration: count,
    charged_seconds: count,
    parts: z.array(z.strictObject({ part: z.string(), seconds: count, amount_exact: decimal })),
    decimals: z.int(),
    rounding: z.enum(roundings),
    cost: amount.nullable(),
    cost_exact: decimal.nullable(),
  })
  .meta({ id: 'Price' })

export const examplePrice = {
  number: '4930100',
  at: exampleTime,
  rate_plan_id: 1,
  prefix: '49',
  currency: 'USD',
  blocked: false,
  period: null,
  rate_per_minute: 0.1,
  rate_per_minute_exact: '0.10',
  first_rate_per_minute: 0.2,
  first_increment: 60,
  increment: 1,
  price_changes: [],
  effective_from: null,
  effective_to: null,
  duration: 20,
  charged_seconds: 60,
  parts: [
    { part: 'connect_fee', seconds: 0, amount_exact: '0.40' },
    { part: 'first_increment', seconds: 60, amount_exact: '0.20' },
    { part: 'further_increments', seconds: 0, amount_exact: '0.00' },
  ],
  decimals: 4,
  rounding: 'up',
  cost: 0.6,
  cost_exact: '0.60',
}

const planQuery = {
  rate_plan: z.string().max(100).optional(),
  rate_plan_id: queryId.optional(),
}

const importQuery = z.strictObject({
  ...planQuery,
  mode: z.enum(['merge', 'replace']).default('merge'),
  dry_run: z
    .enum(['true', 'false'])
    .default('false')
    .describe('`true`: only checks the table, and says what the import would do.'),
  allow_default: z
    .enum(['true', 'false'])
    .default('false')
    .describe('`true`: accepts an empty prefix, which prices every number without another rate.'),
})

/** The price to look up. */
export const lookupFields = {
  /** An unescaped `+` arrives as a space. */
  number: z
    .string()
    .transform((number) => number.replace(/^ (?!\+)/, '+'))
    .pipe(phoneNumber({ least: 1, most: 64 }, 'must be a telephone number')),
  duration: queryInteger(/^\d{1,6}$/, 'must be whole seconds', 0).default(60),
  at: queryTime.optional(),
}

const lookupQuery = z.strictObject({
  ...planQuery,
  customer_id: queryId.optional().describe('By the clock of this customer, and by its plan.'),
  ...lookupFields,
})

interface RateDeps extends ChangeDeps {
  readonly ocs: OcsPort
  readonly reratings: Reratings
  readonly rateImports: RateImports
}

export function rateRoutes(deps: RateDeps) {
  return new Hono<ControlEnv>()
    .route('/', resourceRoutes(deps, ratePlans))
    .route('/', lookUpRateRoute(deps))
    .route('/', exportRatesRoute(deps))
    .route('/', importRatesRoute(deps))
    .route('/', deckRoutes(deps))
    .route('/', reratingRoutes(deps))
    .route('/', resourceRoutes(deps, rates, { filters: planQuery }))
}

function lookUpRateRoute(deps: RateDeps) {
  const { store, now, ocs } = deps
  return new Hono<ControlEnv>().get(
    '/rates/lookup',
    describeRoute({
      id: 'lookUpRate',
      tag: 'Rates',
      summary: 'Look up the price of a call, with its parts',
      answer: data(priceView, examplePrice),
      refusals: [404],
    }),
    requires('rates:read'),
    validate('query', lookupQuery),
    async (c) => {
      const { number, duration, at = now(), customer_id: customer, ...plan } = c.req.valid('query')
      const scope = requestScope(c.var.principal, now)
      const payer = await payerOf(store, customer, scope)
      const named = Object.values(plan).every((each) => each === undefined) ? payer : plan
      const planId = await planFor(store, named, scope)
      const quote = ocs.quote(planId, number, duration, at, payer.id)
      if (quote === undefined)
        throw new ApiError(404, 'no_rate', 'The plan has no rate for this number at this time')
      return ok(c, {
        number,
        at: timeToText(at),
        rate_plan_id: planId,
        ...explanation(quote, duration),
      })
    },
  )
}

/** @throws {ApiError} 400: the reader sees no such customer, or it has no plan. */
async function payerOf(store: Store, customer: number | undefined, scope: RequestScope) {
  const owner = { tenantId: 'any', scope, path: 'customer_id' } as const
  const id = await resolve(store, 'customer', customer ?? null, owner)
  if (id === null) return { id, rate_plan_id: undefined }
  const query = store.db.selectFrom('customer').select('rate_plan_id').where('id', '=', id)
  return { id, rate_plan_id: (await first(store, query))?.rate_plan_id ?? undefined }
}

function exportRatesRoute(deps: RateDeps) {
  const { store, now } = deps
  return new Hono<ControlEnv>().get(
    '/rates/export',
    describeRoute({
      id: 'exportRates',
      tag: 'Rates',
      summary: 'Export the rates of a plan as CSV',
      answer: text('text/csv', 'prefix,description,rate_per_minute\n49,Germany,0.10\n'),
    }),
    requires('rates:read'),
    validate('query', z.strictObject(planQuery)),
    async (c) => {
      const scope = requestScope(c.var.principal, now)
      const planId = await planFor(store, c.req.valid('query'), scope)
      const pageAfter = (id: number) =>
        readApart(store, scope.tenantId, () => ratesAfter(store, planId, id, exportSlice))
      c.header('Content-Type', 'text/csv; charset=utf-8')
      c.header('Content-Disposition', 'attachment; filename="rates.csv"')
      return c.body(exported(pageAfter))
    },
  )
}

function importRatesRoute(deps: RateDeps) {
  const { now, ocs, rateImports } = deps
  return new Hono<ControlEnv>().post(
    '/rates/import',
    describeRoute({
      id: 'importRates',
      tag: 'Rates',
      summary: 'Import rates from CSV. All rows are imported, or none.',
      bodyType: 'text/csv',
      body: 'prefix,rate_per_minute\n49,0.10\n',
      answer: data(
        z
          .strictObject({
            imported: count,
            created: count,
            updated: count,
            removed: count,
            warnings: z
              .array(z.string())
              .optional()
              .describe('Such as a rate that prices every number. Absent: there are none.'),
          })
          .meta({ id: 'ImportReport' }),
        { imported: 1, created: 1, updated: 0, removed: 0 },
      ),
      refusals: [409, 415],
    }),
    requires('rates:write'),
    validate('query', importQuery),
    async (c) => {
      const { mode, dry_run, allow_default, ...plan } = c.req.valid('query')
      refuseOtherType(c)
      const isDryRun = dry_run === 'true'
      const { report, changed } = await importedRates(rateImports, {
        kind: 'rates',
        table: await readBody(c),
        plan,
        order: { mode, isDryRun, allowsDefault: allow_default === 'true' },
        scope: requestScope(c.var.principal, now),
      })
      if (isDryRun) return ok(c, report)
      c.get('budget')?.takeWork(await followRates(ocs, changed))
      c.set('change', { before: null, after: report })
      return ok(c, report)
    },
  )
}

async function importedRates(imports: RateImports, work: RateWork): Promise<RateOutcome> {
  const outcome = await imports.run(work)
  if (outcome.kind === 'rates') return outcome
  throw new Error('an import of rates has imported something else')
}

export function refuseOtherType(c: Context<ControlEnv>): void {
  const type = (c.req.header('content-type') ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? ''
  if (!['text/csv', 'application/csv', 'text/plain'].includes(type))
    throw new ApiError(415, 'unsupported_media_type', 'The body must be text/csv')
}

/** About a millisecond of work. */
const exportSlice = 250

/**
 * Streams header and lines, a slice at a time: a large plan neither fills memory nor delays calls.
 */
function exported(
  pageAfter: (id: number) => Promise<readonly StoredRate[]>,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder()
  let after = 0
  return new ReadableStream({
    start: (controller) => controller.enqueue(encoder.encode(`${csvLine(rateCsvColumns)}\n`)),
    async pull(controller) {
      const rows = await pageAfter(after)
      const lines = rows.map((row) => `${csvLine(rateCells(row))}\n`)
      if (lines.length > 0) controller.enqueue(encoder.encode(lines.join('')))
      after = rows.at(-1)?.id ?? after
      if (rows.length < exportSlice) controller.close()
    },
  })
}

/** The rate in force, and the parts of the price of `seconds`. A blocked prefix has no price. */
export function explanation({ rate, costMicros, parts }: Quote, seconds: number) {
  const { tariff, isBlocked, period = null, effectiveFrom, effectiveTo } = rate
  return {
    prefix: tariff.prefix,
    currency: tariff.currency,
    blocked: isBlocked,
    period,
    rate_per_minute: moneyToNumber(tariff.ratePerMinuteMicros),
    rate_per_minute_exact: moneyToDecimal(tariff.ratePerMinuteMicros),
    first_rate_per_minute: moneyToNumber(tariff.firstRatePerMinuteMicros),
    first_increment: tariff.firstIncrementSeconds,
    increment: tariff.incrementSeconds,
    price_changes: (tariff.changes ?? []).slice(0, MAX_SHOWN_CHANGES).map(changeOf),
    effective_from: timeOrNull(effectiveFrom),
    effective_to: timeOrNull(effectiveTo),
    duration: seconds,
    charged_seconds: parts.reduce((sum, part) => sum + part.seconds, 0),
    parts: parts.map(({ part, seconds: charged, amountMicros }) => ({
      part,
      seconds: charged,
      amount_exact: moneyToDecimal(amountMicros),
    })),
    decimals: tariff.decimals,
    rounding: tariff.rounding ?? 'up',
    cost: isBlocked ? null : moneyToNumber(costMicros),
    cost_exact: isBlocked ? null : moneyToDecimal(costMicros),
  }
}

/** Changes that a look-up shows. */
const MAX_SHOWN_CHANGES = 10

const changeOf = ({
  afterSeconds,
  period,
  ratePerMinuteMicros,
  incrementSeconds,
}: PriceChange) => ({
  after_seconds: afterSeconds,
  period: period ?? null,
  rate_per_minute_exact: moneyToDecimal(ratePerMinuteMicros),
  increment: incrementSeconds,
})

export type PriceExplanation = ReturnType<typeof explanation>
