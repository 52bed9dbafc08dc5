/**
 * What a customer sees on the edge: wallet, ledger, calls and prices. Every query is bound to the customer
 * of the session; no field of a request can name another. Nodes, carriers and actors are not shown.
 */
import { Hono } from 'hono'
import type { Selectable } from 'kysely'
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
import { ok, endingMeta, MAX_COUNTED, MAX_LISTED, offsetOf, pageQuery } from '../http/envelope.ts'
import { countOf } from '../http/rows.ts'
import type { Platform } from '../http/platform.ts'
import { validate } from '../http/validate.ts'
import { queryTime } from '../http/fields.ts'
import { type LedgerEntryView, listLedger } from './ledger-store.ts'
import { explanation } from '../resources/rates/price-explanation.ts'
import { lookupFields } from '../resources/rates/rate-routes.ts'
import { isBalanceLow, refusedMicros } from '../resources/low-balance.ts'

type ClientRoutesDeps = Pick<Platform, 'store' | 'now'> & {
  readonly ocs: Pick<OcsPort, 'balanceOf' | 'quote'>
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
  const self = (principal: Principal): number => customerOf(principal).customerId

  return new Hono<ControlEnv>()
    .get('/wallet', requiresCustomer(), async (c) =>
      ok(c, await walletOf(store, ocs, self(c.get('principal')))),
    )

    .get('/ledger', requiresCustomer(), validate('query', ledgerQuery), async (c) => {
      const { page, limit, ...filter } = c.req.valid('query')
      const slice = { limit, offset: offsetOf({ page, limit }) }
      const id = self(c.get('principal'))
      const list = () => listLedger(store, id, filter, slice)
      const { rows, total } = await readApart(store, readerOf(id), list)
      return ok(c, rows.map(entryOf), endingMeta({ page, limit }, total))
    })

    .get('/cdrs', requiresCustomer(), validate('query', cdrQuery), async (c) => {
      const { page, limit, ...filter } = c.req.valid('query')
      const id = self(c.get('principal'))
      const slice = { limit, offset: offsetOf({ page, limit }) }
      const list = () => callsOf(store, id, filter, slice)
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

type CallFilter = Omit<z.output<typeof cdrQuery>, 'page' | 'limit'>

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
})
