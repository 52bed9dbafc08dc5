/**
 * What a customer sees on the edge: wallet, ledger, calls and prices. Every query is bound to the customer
 * of the session; no field of a request can name another. Nodes, carriers and actors are not shown.
 */
import { Hono } from 'hono'
import { z } from 'zod'
import { dispositions, entryKinds } from '../../schema/contracts/field-values.ts'
import { exactSum, moneyToDecimal, moneyToNumber, timeToText } from '../../schema/columns.ts'
import { storedDenialText } from '../../schema/contracts/denials.ts'
import type { OcsPort } from '../../schema/contracts/ocs.ts'
import type { CdrTable } from '../../schema/database.ts'
import type { Store } from '../../schema/open.ts'
import { all, first } from '../../schema/sql/query.ts'
import { readApart } from '../../schema/sql/read-apart.ts'
import { customerOf, requiresCustomer } from '../auth/requires.ts'
import type { Principal } from '../auth/principal.ts'
import { ApiError, notFound } from '../http/api-error.ts'
import type { ControlEnv } from '../http/control-env.ts'
import { endingMeta, MAX_COUNTED, MAX_LISTED, offsetOf, ok, pageQuery } from '../http/envelope.ts'
import { validate } from '../http/validate.ts'
import { queryTime } from '../http/fields.ts'
import { LedgerStore, type LedgerEntryView } from './ledger-store.ts'
import { isBalanceLow, refusedMicros } from '../resources/customers/low-balance.ts'
import { explanation } from '../resources/rates/price-explanation.ts'
import { lookupFields } from '../resources/rates/rate-routes.ts'

export interface ClientRoutesDeps {
  readonly store: Store
  readonly ocs: Pick<OcsPort, 'balanceOf' | 'quote'>
  /** Milliseconds UTC. */
  readonly now: () => number
}

const ledgerQuery = z.strictObject({
  ...pageQuery,
  kind: z.enum(entryKinds).optional(),
  start_date: queryTime.optional(),
  end_date: queryTime.optional(),
})

const cdrQuery = z.strictObject({
  ...pageQuery,
  start_date: queryTime.optional(),
  end_date: queryTime.optional(),
  disposition: z.enum(dispositions).optional(),
})

/** Mounted under `/api/client`. */
export function clientRoutes({ store, ocs, now }: ClientRoutesDeps) {
  const ledger = new LedgerStore(store)
  const self = (principal: Principal): number => customerOf(principal).customerId

  return new Hono<ControlEnv>()
    .get('/wallet', requiresCustomer(), async (c) =>
      ok(c, await walletOf(store, ocs, self(c.get('principal')))),
    )

    .get('/ledger', requiresCustomer(), validate('query', ledgerQuery), async (c) => {
      const { page, limit, ...filter } = c.req.valid('query')
      const slice = { limit, offset: offsetOf({ page, limit }) }
      const id = self(c.get('principal'))
      const list = () => ledger.list(id, filter, slice)
      const { rows, total } = await readApart(store, readerOf(id), list)
      return ok(c, rows.map(entryOf), endingMeta({ page, limit }, total))
    })

    .get('/cdrs', requiresCustomer(), validate('query', cdrQuery), async (c) => {
      const { page, limit, ...filter } = c.req.valid('query')
      const id = self(c.get('principal'))
      const calls = callsOf(store, id, filter)
      const slice = { limit, offset: offsetOf({ page, limit }) }
      const list = async () => ({ rows: await calls.page(slice), total: await calls.total() })
      const { rows, total } = await readApart(store, readerOf(id), list)
      return ok(c, rows, endingMeta({ page, limit }, total))
    })

    .get(
      '/rates/lookup',
      requiresCustomer(),
      validate('query', z.strictObject(lookupFields)),
      async (c) => {
        const { number, duration, at = now() } = c.req.valid('query')
        const planId = (await customerRow(store, self(c.get('principal')))).rate_plan_id
        const quote = planId === null ? undefined : ocs.quote(planId, number, duration, at)
        if (quote === undefined)
          throw new ApiError(404, 'no_rate', 'There is no rate for this number at this time')
        return ok(c, { number, at: timeToText(at), ...explanation(quote, duration) })
      },
    )
}

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

interface CallFilter {
  readonly start_date?: number | undefined
  readonly end_date?: number | undefined
  readonly disposition?: CdrTable['disposition'] | undefined
}

/** Newest first. */
function callsOf(store: Store, customerId: number, filter: CallFilter) {
  const { start_date: from, end_date: before, disposition } = filter
  const matching = store.db
    .selectFrom('cdr')
    .where('customer_id', '=', customerId)
    .$if(from !== undefined, (query) => query.where('start_stamp', '>=', from ?? 0))
    .$if(before !== undefined, (query) => query.where('start_stamp', '<', before ?? 0))
    .$if(disposition !== undefined, (query) =>
      query.where('disposition', '=', disposition ?? 'ANSWERED'),
    )
  return {
    total: async (): Promise<number> => {
      const some = matching.select('id').limit(MAX_COUNTED).as('some')
      const query = store.db.selectFrom(some).select((row) => row.fn.countAll<number>().as('n'))
      return (await first(store, query))?.n ?? 0
    },
    page: async ({ limit, offset }: { readonly limit: number; readonly offset: number }) =>
      (offset >= MAX_LISTED
        ? []
        : await all(
            store,
            matching
              .selectAll()
              .orderBy('start_stamp', 'desc')
              .orderBy('id', 'desc')
              .limit(limit)
              .offset(offset),
          )
      ).map((row) => ({
        call_uuid: row.call_uuid,
        direction: row.direction,
        caller_id_number: row.caller_id_number,
        destination_number: row.destination_number,
        start_stamp: timeToText(row.start_stamp),
        answer_stamp: row.answer_stamp === null ? null : timeToText(row.answer_stamp),
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
      })),
  }
}
