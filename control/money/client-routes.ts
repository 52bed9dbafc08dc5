/**
 * The routes of a customer on the edge: wallet, ledger, calls and prices. Every query is bound to
 * the customer of the session; no field of a request can name another. Nodes, carriers and actors
 * are not shown.
 */
import { Hono } from 'hono'
import type { Selectable } from 'kysely'
import { z } from 'zod'
import { dispositions, directions, mosSources } from '../../schema/contracts/field-values.ts'
import { exactSum, moneyToDecimal, moneyToNumber, timeToText } from '../../schema/columns.ts'
import { storedDenialText } from '../../schema/contracts/denials.ts'
import type { OcsPort } from '../../schema/contracts/charging.ts'
import type { Store } from '../../schema/storage/store.ts'
import { all, first, readApart } from '../../schema/sql/query.ts'
import { customerOf, requiresCustomer } from '../auth/requires.ts'
import type { Principal } from '../auth/principal.ts'
import { ApiError, notFound } from '../http/api-error.ts'
import type { ControlEnv } from '../http/control-env.ts'
import { ok, endingMeta, MAX_COUNTED, MAX_LISTED, offsetOf, pageQuery } from '../http/envelope.ts'
import { countOf } from '../http/rows.ts'
import type { Platform } from '../http/platform.ts'
import { validate, describeRoute } from '../http/validate.ts'
import { timeZone, zonedQueryTime } from '../http/fields.ts'
import { type LedgerEntryView, listLedger } from './ledger-store.ts'
import { explanation, lookupFields, examplePrice, priceView } from '../resources/rate-routes.ts'
import { boundsOfCustomer } from '../reports/report-zones.ts'
import { isBalanceLow, refusedMicros } from '../resources/customers.ts'
import {
  count,
  decimal,
  denialTextField,
  exampleTime,
  moment,
  timeOrNull,
} from '../http/view-fields.ts'
import { data, list } from '../http/operation.ts'
import { exampleBalance, ledgerFields, ledgerQuery } from './customer-routes.ts'
import type { CdrTable } from '../../schema/tables/calls.ts'

const ownWallet = z
  .strictObject({
    currency: z.string().nullable(),
    balance: decimal,
    balance_number: z.number(),
    credit_limit: z.number(),
    reserved: decimal,
    available: decimal,
    open_calls: count,
    low_balance_threshold: z.number(),
    is_balance_low: z.boolean(),
  })
  .meta({ id: 'OwnWallet' })

const ownEntry = ledgerFields
  .omit({ ref: true, actor: true })
  .extend({ call_uuid: z.string().nullable().describe('The charged call.') })
  .meta({ id: 'OwnLedgerEntry' })

const ownCall = z
  .strictObject({
    call_uuid: z.string(),
    direction: z.enum(directions),
    caller_id_number: z.string(),
    destination_number: z.string(),
    start_stamp: moment,
    answer_stamp: moment.nullable(),
    end_stamp: moment,
    billsec: count,
    disposition: z.enum(dispositions),
    denial_code: z.string().nullable(),
    denial_text: denialTextField,
    mos_score: z.number().nullable(),
    mos_source: z.enum(mosSources).nullable(),
    cost: z.number(),
    cost_exact: decimal,
    currency: z.string().nullable(),
    rate_prefix: z.string().nullable(),
  })
  .meta({ id: 'OwnCall' })

type ClientRoutesDeps = Pick<Platform, 'store' | 'now'> & {
  readonly ocs: Pick<OcsPort, 'balanceOf' | 'quote'>
}

const cdrQuery = z.strictObject({
  ...pageQuery,
  start_date: zonedQueryTime.optional(),
  end_date: zonedQueryTime.optional(),
  time_zone: timeZone
    .optional()
    .describe("Of dates without a time. Absent: the customer's, else the tenant's, else UTC."),
  disposition: z.enum(dispositions).optional(),
})

/** Mounted under `/api/client`. */
export function clientRoutes(deps: ClientRoutesDeps) {
  return new Hono<ControlEnv>()
    .route('/', getOwnWalletRoute(deps))
    .route('/', listOwnLedgerEntriesRoute(deps))
    .route('/', listOwnCallsRoute(deps))
    .route('/', lookUpOwnRateRoute(deps))
}

const getOwnWalletRoute = ({ store, ocs }: ClientRoutesDeps) =>
  new Hono<ControlEnv>().get(
    '/wallet',
    describeRoute({
      id: 'getOwnWallet',
      tag: 'Customer edge',
      summary: 'Get the wallet',
      answer: data(ownWallet, {
        ...exampleBalance,
        low_balance_threshold: 5,
        is_balance_low: false,
      }),
      refusals: [404],
    }),
    requiresCustomer(),
    async (c) => ok(c, await walletOf(store, ocs, self(c.get('principal')))),
  )

const listOwnLedgerEntriesRoute = ({ store }: ClientRoutesDeps) =>
  new Hono<ControlEnv>().get(
    '/ledger',
    describeRoute({
      id: 'listOwnLedgerEntries',
      tag: 'Customer edge',
      summary: 'List ledger entries: every change of the balance',
      answer: list(ownEntry, {
        id: 1,
        kind: 'topup',
        amount: 25,
        amount_exact: '25.00',
        balance_after: 25,
        balance_after_exact: '25.00',
        note: null,
        call: null,
        created_at: exampleTime,
        call_uuid: null,
      }),
    }),
    requiresCustomer(),
    validate('query', ledgerQuery),
    async (c) => {
      const { page, limit, kind, ...bounds } = c.req.valid('query')
      const slice = { limit, offset: offsetOf({ page, limit }) }
      const id = self(c.get('principal'))
      const filter = { kind, ...(await boundsOfCustomer(store, id, bounds)) }
      const list = () => listLedger(store, id, filter, slice)
      const { rows, total } = await readApart(store, readerOf(id), list)
      return ok(c, rows.map(entryOf), endingMeta({ page, limit }, total))
    },
  )

const listOwnCallsRoute = ({ store }: ClientRoutesDeps) =>
  new Hono<ControlEnv>().get(
    '/cdrs',
    describeRoute({
      id: 'listOwnCalls',
      tag: 'Customer edge',
      summary: 'List calls, newest first',
      answer: list(ownCall, {
        call_uuid: '0b4c1c1e-7f0a-4a37-9d1f-0f6a5f5e9c11',
        direction: 'outbound',
        caller_id_number: '4930100',
        destination_number: '4940200',
        start_stamp: exampleTime,
        answer_stamp: exampleTime,
        end_stamp: exampleTime,
        billsec: 20,
        disposition: 'ANSWERED',
        denial_code: null,
        mos_score: null,
        mos_source: null,
        denial_text: null,
        cost: 0.6,
        cost_exact: '0.60',
        currency: 'USD',
        rate_prefix: '49',
      }),
    }),
    requiresCustomer(),
    validate('query', cdrQuery),
    async (c) => {
      const { page, limit, disposition, ...bounds } = c.req.valid('query')
      const id = self(c.get('principal'))
      const filter = { disposition, ...(await boundsOfCustomer(store, id, bounds)) }
      const slice = { limit, offset: offsetOf({ page, limit }) }
      const list = () => callsOf(store, id, filter, slice)
      const { rows, total } = await readApart(store, readerOf(id), list)
      return ok(c, rows, endingMeta({ page, limit }, total))
    },
  )

const lookUpOwnRateRoute = ({ store, now, ocs }: ClientRoutesDeps) =>
  new Hono<ControlEnv>().get(
    '/rates/lookup',
    describeRoute({
      id: 'lookUpOwnRate',
      tag: 'Customer edge',
      summary: 'Look up the price of a call',
      answer: data(priceView, examplePrice),
      refusals: [404],
    }),
    requiresCustomer(),
    validate('query', z.strictObject(lookupFields)),
    async (c) => {
      const { number, duration, at = now() } = c.req.valid('query')
      const id = self(c.get('principal'))
      const planId = (await customerRow(store, id)).rate_plan_id
      const quote = planId === null ? undefined : ocs.quote(planId, number, duration, at, id)
      if (quote === undefined)
        throw new ApiError(404, 'no_rate', 'There is no rate for this number at this time')
      return ok(c, { number, at: timeToText(at), ...explanation(quote, duration) })
    },
  )

const self = (principal: Principal): number => customerOf(principal).customerId

/** Customers do not wait for each other's lists. */
const readerOf = (customerId: number): string => `customer ${customerId}`

async function customerRow(store: Store, id: number) {
  const columns = ['rate_plan_id', 'low_balance_micros', 'credit_limit_micros'] as const
  const row = await first(
    store,
    store.db
      .selectFrom('customer')
      .leftJoin('wallet', 'wallet.customer_id', 'customer.id')
      .select([...columns, 'wallet.currency', exactSum('wallet.balance_micros').as('balance')])
      .select(refusedMicros.as('refused_micros'))
      .where('customer.id', '=', id),
  )
  if (row === undefined) throw notFound('Customer')
  return row
}

async function walletOf(store: Store, ocs: Pick<OcsPort, 'balanceOf'>, id: number) {
  const live = ocs.balanceOf(id)
  if (live === undefined) throw notFound('Wallet')
  const { reservedMicros, openCalls } = live
  // As it is stored: another process may have changed it.
  const row = await customerRow(store, id)
  const balanceMicros = BigInt(row.balance ?? 0)
  const { low_balance_micros: threshold, credit_limit_micros: creditMicros } = row
  const spendableMicros = balanceMicros + BigInt(creditMicros) - reservedMicros
  return {
    currency: row.currency,
    balance: moneyToDecimal(balanceMicros),
    balance_number: moneyToNumber(balanceMicros),
    credit_limit: moneyToNumber(creditMicros),
    reserved: moneyToDecimal(reservedMicros),
    available: moneyToDecimal(row.currency === null ? 0 : spendableMicros),
    open_calls: openCalls,
    low_balance_threshold: moneyToNumber(threshold),
    is_balance_low: isBalanceLow({
      balanceMicros,
      reservedMicros,
      thresholdMicros: threshold,
      creditMicros,
      refusedMicros: row.refused_micros ?? 0,
    }),
  }
}

const entryOf = ({ ref, actor: _actor, ...entry }: LedgerEntryView) => ({
  ...entry,
  call_uuid: entry.kind === 'debit' ? ref : null,
})

type CallFilter = Awaited<ReturnType<typeof boundsOfCustomer>> &
  Pick<z.output<typeof cdrQuery>, 'disposition'>

/** Newest first. */
async function callsOf(
  store: Store,
  customerId: number,
  filter: CallFilter,
  { limit, offset }: { readonly limit: number; readonly offset: number },
) {
  const { start_date: from, end_date: before, disposition } = filter
  const matching = store.db
    .selectFrom('cdr')
    .where('customer_id', '=', customerId)
    .$if(from !== undefined, (query) => query.where('start_stamp', '>=', from ?? 0))
    .$if(before !== undefined, (query) => query.where('start_stamp', '<', before ?? 0))
    .$if(disposition !== undefined, (query) =>
      query.where('disposition', '=', disposition ?? 'ANSWERED'),
    )
  const total = await countOf(store, matching.select('id').limit(MAX_COUNTED))
  const page = matching
    .selectAll()
    .orderBy('start_stamp', 'desc')
    .orderBy('id', 'desc')
    .limit(limit)
    .offset(offset)
  return { total, rows: (offset >= MAX_LISTED ? [] : await all(store, page)).map(callView) }
}

const callView = (row: Selectable<CdrTable>) => ({
  call_uuid: row.call_uuid,
  direction: row.direction,
  caller_id_number: row.caller_id_number,
  destination_number: row.destination_number,
  start_stamp: timeToText(row.start_stamp),
  answer_stamp: timeOrNull(row.answer_stamp),
  end_stamp: timeToText(row.end_stamp),
  billsec: row.billsec,
  disposition: row.disposition,
  denial_code: row.denial_code,
  denial_text: storedDenialText(row.denial_code, row.denial_text),
  mos_score: row.mos_score,
  mos_source: row.mos_source,
  cost: moneyToNumber(row.cost_micros),
  cost_exact: moneyToDecimal(row.cost_micros),
  currency: row.currency,
  rate_prefix: row.rate_prefix,
})
