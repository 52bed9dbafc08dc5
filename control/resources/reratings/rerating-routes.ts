/** `/rates/reratings`: past calls are priced anew by a plan that was corrected, and back again. */
import { type Context, Hono } from 'hono'
import { z } from 'zod'
import { moneyToDecimal, timeToText } from '../../../schema/columns.ts'
import type { OcsPort } from '../../../schema/contracts/charging.ts'
import { readApart } from '../../../schema/sql/query.ts'
import type { ReratingKind } from '../../../schema/tables/reratings.ts'
import { fieldsWhere, refuseBeyondScope, requires } from '../../auth/requires.ts'
import { requestScope } from '../../auth/tenants.ts'
import type { ChangeDeps } from '../../changes/kinds.ts'
import type { ControlEnv } from '../../http/control-env.ts'
import { created, ok, offsetOf, pageMeta, pageQuery, queryId } from '../../http/envelope.ts'
import { prefix, reference, time } from '../../http/fields.ts'
import { data, list } from '../../http/operation.ts'
import { describeRoute, validate } from '../../http/validate.ts'
import { count, decimal, moment } from '../../http/view-fields.ts'
import { either } from '../references.ts'
import { recordsIn } from './rerated-calls.ts'
import { MAX_DIFFERENCES, type ReratingPreview } from './rerating-preview.ts'
import {
  beginRerating,
  beginUndo,
  differencesOfJob,
  findRerating,
  listReratings,
  type Meant,
  meantBy,
  namesOfCustomers,
} from './rerating-store.ts'
import {
  amountsOf,
  counted,
  exampleCounted,
  exampleJob,
  jobFields,
  jobOf,
  jobView,
  reratingKinds,
} from './rerating-view.ts'
import type { Reratings } from './reratings.ts'

interface ReratingDeps extends ChangeDeps {
  readonly ocs: OcsPort
  readonly reratings: Reratings
}

export const reratingRoutes = (deps: ReratingDeps) =>
  new Hono<ControlEnv>()
    .route('/', previewRoute(deps))
    .route('/', beginRoute(deps))
    .route('/', listRoute(deps))
    .route('/', getRoute(deps))
    .route('/', undoRoute(deps))

const orderBody = z.strictObject({
  kind: z
    .enum(reratingKinds)
    .describe(
      '`sold`: what customers of the plan have paid; needs `wallets:write`. `bought`: what its ' +
        'carriers take.',
    ),
  rate_plan: reference.nullish(),
  rate_plan_id: z.int().min(1).nullish(),
  from: time.describe('Calls that began since then.'),
  to: time.describe('Exclusive.'),
  customer: reference.nullish().describe('Absent: all.'),
  customer_id: z.int().min(1).nullish(),
  carrier: reference.nullish().describe('Absent: all of the plan.'),
  carrier_id: z.int().min(1).nullish(),
  prefix: prefix.default('').describe('Called numbers that begin with it.'),
  prices: z
    .enum(['at_call', 'now'])
    .default('at_call')
    .describe('`at_call`: the price that the plan now has for the time of the call.'),
})

type OrderBody = z.output<typeof orderBody>

const exampleOrder = {
  kind: 'bought',
  rate_plan: 'cost of north',
  from: '2026-01-01T00:00:00Z',
  to: '2026-02-01T00:00:00Z',
}

const differenceFields = {
  customer_id: z.int().nullable(),
  customer: z.string().nullable(),
  calls: count,
  before_exact: decimal,
  after_exact: decimal,
  difference_exact: decimal,
}

const previewView = z
  .strictObject({
    complete: z.boolean().describe('`false`: only the first 200,000 records were looked at.'),
    records: count,
    ...counted,
    customers: z
      .array(z.strictObject(differenceFields))
      .describe(
        `The ${MAX_DIFFERENCES} largest differences. Empty without the scope \`customers:read\`.`,
      ),
    examples: z
      .array(
        z.strictObject({
          call_uuid: z.string(),
          destination_number: z.string(),
          start: moment,
          billsec: count,
          prefix: z.string(),
          before_exact: decimal,
          after_exact: decimal,
        }),
      )
      .describe('Those that change most. Empty without the scope `cdrs:read`.'),
  })
  .meta({ id: 'ReratingPreview' })

export type ReratingPreviewView = z.output<typeof previewView>

function previewRoute({ store, now, reratings }: ReratingDeps) {
  return new Hono<ControlEnv>().post(
    '/rates/reratings/preview',
    describeRoute({
      id: 'previewRerating',
      tag: 'Rates',
      summary: 'Show what a re-rating would change. Nothing is stored.',
      body: exampleOrder,
      answer: data(previewView, {
        complete: true,
        records: 5,
        ...exampleCounted,
        customers: [],
        examples: [],
      }),
      refusals: [409, 429, 503],
    }),
    requires('rates:read'),
    validate('json', orderBody),
    async (c) => {
      const scope = requestScope(c.var.principal, now)
      const meant = await meantBy(store, orderOf(c.req.valid('json')), scope)
      const preview = await reratings.preview(scope.tenantId, meant)
      const { scopes } = c.var.principal
      const shown = scopes.has('customers:read') ? preview.customers : []
      const names = await namesOfCustomers(
        store,
        shown.map(({ customerId }) => customerId),
      )
      return ok(c, {
        ...previewOf(meant, preview),
        customers: shown.map(({ customerId, calls, before, after }) => ({
          customer_id: customerId === 0 ? null : customerId,
          customer: names.get(customerId) ?? null,
          calls,
          ...amountsOf(before, after),
        })),
        examples: scopes.has('cdrs:read') ? preview.examples.map(exampleOf) : [],
      })
    },
  )
}

const previewOf = ({ currency }: Meant, { counts, sums, isComplete }: ReratingPreview) => {
  const { looked, ...others } = counts
  return {
    complete: isComplete,
    records: looked,
    ...others,
    currency,
    ...amountsOf(sums.before, sums.after),
  }
}

const exampleOf = (call: ReratingPreview['examples'][number]) => ({
  call_uuid: call.call_uuid,
  destination_number: call.destination_number,
  start: timeToText(call.start_stamp),
  billsec: call.billsec,
  prefix: call.newPrefix,
  before_exact: moneyToDecimal(call.micros ?? 0),
  after_exact: moneyToDecimal(call.newMicros),
})

/** Where money moves, a wallet is written, too. */
function refuseWithoutWallets(c: Context<ControlEnv>, kind: ReratingKind): void {
  refuseBeyondScope(c.var.principal, fieldsWhere([kind === 'sold', 'kind', ['wallets:write']]))
}

function beginRoute({ store, now, randomBytes, reratings }: ReratingDeps) {
  return new Hono<ControlEnv>().post(
    '/rates/reratings',
    describeRoute({
      id: 'beginRerating',
      tag: 'Rates',
      summary: 'Price past calls anew, as a job that can be undone',
      body: exampleOrder,
      answer: data(jobView, exampleJob, 201),
      refusals: [409, 503],
    }),
    requires('rates:write'),
    validate('json', orderBody),
    async (c) => {
      const body = c.req.valid('json')
      refuseWithoutWallets(c, body.kind)
      const scope = requestScope(c.var.principal, now)
      const meant = await meantBy(store, orderOf(body), scope)
      const ref = randomBytes(16).toString('hex')
      const total = await recordsIn(store, meant)
      const claim = reratings.claim()
      const id = await beginRerating(store, meant, { ref, scope, claim, total })
      const job = jobOf(await findRerating(store, id, scope))
      reratings.wake()
      c.set('change', { before: null, after: job })
      return created(c, `/api/v1/rates/reratings/${id}`, job)
    },
  )
}

function listRoute({ store, now }: ReratingDeps) {
  return new Hono<ControlEnv>().get(
    '/rates/reratings',
    describeRoute({
      id: 'listReratings',
      tag: 'Rates',
      summary: 'List re-ratings, newest first',
      answer: list(jobView, exampleJob),
    }),
    requires('rates:read'),
    validate('query', z.strictObject({ ...pageQuery, rate_plan_id: queryId.optional() })),
    async (c) => {
      const { page, limit, rate_plan_id: planId } = c.req.valid('query')
      const scope = requestScope(c.var.principal, now)
      const slice = { limit, offset: offsetOf({ page, limit }) }
      const { rows, total } = await readApart(store, scope.tenantId, () =>
        listReratings(store, scope, planId, slice),
      )
      return ok(c, rows.map(jobOf), pageMeta({ page, limit }, total))
    },
  )
}

const idParam = z.strictObject({ id: queryId })

const detailView = z
  .strictObject({
    ...jobFields,
    customers: z
      .array(
        z.strictObject({
          ...differenceFields,
          posted_exact: decimal
            .nullable()
            .describe('Added to the wallet. Null: nothing yet; 0: there is none.'),
        }),
      )
      .describe('Of changed calls. Empty without the scope `customers:read`.'),
  })
  .meta({ id: 'ReratingDetail' })

export type ReratingDetailView = z.output<typeof detailView>

function getRoute({ store, now }: ReratingDeps) {
  return new Hono<ControlEnv>().get(
    '/rates/reratings/:id',
    describeRoute({
      id: 'getRerating',
      tag: 'Rates',
      summary: 'How far a re-rating is, and what it has changed',
      answer: data(detailView, { ...exampleJob, customers: [] }),
      refusals: [404],
    }),
    requires('rates:read'),
    validate('param', idParam),
    async (c) => {
      const scope = requestScope(c.var.principal, now)
      const job = await findRerating(store, c.req.valid('param').id, scope)
      const mayRead = c.var.principal.scopes.has('customers:read')
      const customers = mayRead ? await differencesOfJob(store, job.id) : []
      return ok(c, {
        ...jobOf(job),
        customers: customers.map(({ customer_id: id, name, calls, before, after, posted }) => ({
          customer_id: id === 0 ? null : id,
          customer: name,
          calls,
          ...amountsOf(BigInt(before), BigInt(after)),
          posted_exact: posted === null ? null : moneyToDecimal(BigInt(posted)),
        })),
      })
    },
  )
}

function undoRoute({ store, now, reratings }: ReratingDeps) {
  return new Hono<ControlEnv>().post(
    '/rates/reratings/:id/undo',
    describeRoute({
      id: 'undoRerating',
      tag: 'Rates',
      summary: 'Give the calls of a re-rating back the prices of before, and the money',
      answer: data(jobView, { ...exampleJob, state: 'undoing' }),
      refusals: [404, 409, 503],
    }),
    requires('rates:write'),
    validate('param', idParam),
    async (c) => {
      const { id } = c.req.valid('param')
      const scope = requestScope(c.var.principal, now)
      refuseWithoutWallets(c, (await findRerating(store, id, scope)).kind)
      await beginUndo(store, id, scope)
      reratings.wake()
      const job = jobOf(await findRerating(store, id, scope))
      c.set('change', { before: { rerating: id }, after: job })
      return ok(c, job)
    },
  )
}

const orderOf = (body: OrderBody) => ({
  kind: body.kind,
  plan: either('rate_plan', body.rate_plan, body.rate_plan_id),
  customer: either('customer', body.customer, body.customer_id),
  carrier: either('carrier', body.carrier, body.carrier_id),
  from: body.from,
  before: body.to,
  prefix: body.prefix,
  prices: body.prices,
})
