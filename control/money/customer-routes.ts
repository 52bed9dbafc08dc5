/** `/customers`: the payers of calls, their balances, and every change of a balance. */
import type { ChangeDeps } from '../changes/kinds.ts'
import { Hono } from 'hono'
import { z } from 'zod'
import { entryKinds } from '../../schema/contracts/field-values.ts'
import {
  decimalToMicros,
  MAX_AMOUNT_UNITS,
  moneyToDecimal,
  moneyToNumber,
} from '../../schema/columns.ts'
import type { MoneyMoveResult, OcsPort } from '../../schema/contracts/charging.ts'
import { readApart } from '../../schema/sql/query.ts'
import { requires } from '../auth/requires.ts'
import { ApiError, conflict, notFound } from '../http/api-error.ts'
import type { ControlEnv } from '../http/control-env.ts'
import { endingMeta, offsetOf, ok, pageQuery } from '../http/envelope.ts'
import { validate, describeRoute } from '../http/validate.ts'
import { repeatable } from '../auth/idempotency.ts'
import { money, text, timeZone, zonedQueryTime } from '../http/fields.ts'
import { found, idParam, resourceRoutes } from '../resources/resource-routes.ts'
import { requestScope, type RequestScope } from '../auth/tenants.ts'
import { listLedger, type LedgerEntryView } from './ledger-store.ts'
import { boundsOfCustomer } from '../reports/report-zones.ts'
import { customers, type CustomerView } from '../resources/customers.ts'
import { resourceDeps, storeOf } from '../resources/resource.ts'
import { amount, currency } from '../resources/rate-routes.ts'
import { count, decimal, exampleTime, moment } from '../http/view-fields.ts'
import { data, list } from '../http/operation.ts'

const walletFields = z.strictObject({
  customer_id: z.int(),
  currency,
  balance: decimal,
  balance_number: amount,
  credit_limit: amount,
  reserved: decimal.describe('Amount reserved for live calls.'),
  available: decimal,
  open_calls: count,
})

const wallet = walletFields.meta({ id: 'Wallet' })

export const ledgerFields = z.strictObject({
  id: z.int(),
  kind: z.enum(entryKinds),
  amount: amount.describe('Amount added to the balance; negative for a charge.'),
  amount_exact: decimal,
  balance_after: amount,
  balance_after_exact: decimal,
  ref: z.string(),
  actor: z.string(),
  note: z.string().nullable(),
  call: z
    .strictObject({ destination_number: z.string(), billsec: count })
    .nullable()
    .describe('The call that was charged. Null for other entries, and when its record is gone.'),
  created_at: moment,
})

const ledgerEntry: z.ZodType<LedgerEntryView> = ledgerFields.meta({ id: 'LedgerEntry' })

export const exampleBalance = {
  currency: 'USD',
  balance: '25.00',
  balance_number: 25,
  credit_limit: 0,
  reserved: '0.00',
  available: '25.00',
  open_calls: 0,
}

const walletMove = walletFields
  .extend({
    kind: z.enum(['topup', 'adjust', 'refund']),
    amount,
    amount_exact: decimal,
    reason: z.string(),
  })
  .meta({ id: 'WalletMove' })

const exampleWallet = { customer_id: 7, ...exampleBalance }

const noun = 'Customer'

const adjustBody = z.strictObject({
  amount: money({ min: -MAX_AMOUNT_UNITS })
    .refine((micros) => micros !== 0, 'must not be 0')
    .describe('Added to the balance; an adjustment may be negative.'),
  reason: text(200).min(1),
  kind: z.enum(['adjust', 'topup', 'refund']).default('adjust'),
})

export const ledgerQuery = z.strictObject({
  ...pageQuery,
  kind: z.enum(entryKinds).optional(),
  start_date: zonedQueryTime.optional(),
  end_date: zonedQueryTime.optional(),
  time_zone: timeZone
    .optional()
    .describe("Of dates without a time. Absent: the customer's, else the tenant's, else UTC."),
})

interface CustomerReader {
  find(scope: RequestScope, id: number): Promise<CustomerView | undefined>
}

type CustomerRoutesDeps = ChangeDeps & { readonly ocs: OcsPort }

export function customerRoutes(deps: CustomerRoutesDeps) {
  const stored = storeOf(customers, resourceDeps(deps))

  return new Hono<ControlEnv>()
    .route('/', resourceRoutes(deps, customers))
    .route('/', getWalletRoute(deps, stored))
    .route('/', listLedgerEntriesRoute(deps, stored))
    .route('/', adjustWalletRoute(deps, stored))
}

const getWalletRoute = ({ now, ocs }: CustomerRoutesDeps, stored: CustomerReader) =>
  new Hono<ControlEnv>().get(
    '/customers/:id/wallet',
    describeRoute({
      id: 'getWallet',
      tag: 'Customers',
      summary: 'Get the wallet of a customer',
      answer: data(wallet, exampleWallet),
    }),
    requires('wallets:read'),
    validate('param', idParam(noun)),
    async (c) => {
      const scope = requestScope(c.var.principal, now)
      return ok(c, walletView(found(await stored.find(scope, c.req.valid('param').id), noun), ocs))
    },
  )

const listLedgerEntriesRoute = ({ store, now }: CustomerRoutesDeps, stored: CustomerReader) =>
  new Hono<ControlEnv>().get(
    '/customers/:id/ledger',
    describeRoute({
      id: 'listLedgerEntries',
      tag: 'Customers',
      summary: 'List ledger entries: every change of the balance',
      answer: list(ledgerEntry, {
        id: 1,
        kind: 'topup',
        amount: 25,
        amount_exact: '25.00',
        balance_after: 25,
        balance_after_exact: '25.00',
        ref: 'pi_1',
        actor: 'payment',
        note: null,
        call: null,
        created_at: exampleTime,
      }),
    }),
    requires('wallets:read'),
    validate('param', idParam(noun)),
    validate('query', ledgerQuery),
    async (c) => {
      const { page, limit, kind, ...bounds } = c.req.valid('query')
      const { id } = c.req.valid('param')
      const scope = requestScope(c.var.principal, now)
      found(await stored.find(scope, id), noun)
      const slice = { limit, offset: offsetOf({ page, limit }) }
      const filter = { kind, ...(await boundsOfCustomer(store, id, bounds)) }
      const list = () => listLedger(store, id, filter, slice)
      const { rows, total } = await readApart(store, scope.tenantId, list)
      return ok(c, rows, endingMeta({ page, limit }, total))
    },
  )

const adjustWalletRoute = ({ now, randomBytes, ocs }: CustomerRoutesDeps, stored: CustomerReader) =>
  new Hono<ControlEnv>().post(
    '/customers/:id/wallet/adjust',
    describeRoute({
      id: 'adjustWallet',
      tag: 'Customers',
      summary: 'Adjust the balance manually',
      body: { amount: '10.00', kind: 'topup', reason: 'bank transfer 4711' },
      answer: data(walletMove, {
        ...exampleWallet,
        kind: 'topup',
        amount: 10,
        amount_exact: '10.00',
        reason: 'bank transfer 4711',
      }),
      refusals: [409],
    }),
    requires('wallets:write'),
    validate('param', idParam(noun)),
    validate('json', adjustBody),
    repeatable(),
    async (c) => {
      const { id } = c.req.valid('param')
      const { amount, reason, kind } = c.req.valid('json')
      if (amount < 0 && kind !== 'adjust')
        throw new ApiError(400, 'validation_failed', `A ${kind} cannot be negative`, {
          details: [{ path: 'amount', message: 'must be above 0' }],
        })
      const scope = requestScope(c.var.principal, now)
      const customer = found(await stored.find(scope, id), noun)
      const before = walletView(customer, ocs)
      // The client's key is part of the reference, so the ledger refuses to move the money twice.
      const key = c.req.header('idempotency-key')
      const ref =
        key === undefined
          ? `adjust:${randomBytes(16).toString('hex')}`
          : `adjust:${scope.actor}:${id}:${key}`
      refuse(
        await ocs.move({
          customerId: id,
          kind,
          amountMicros: amount,
          ref,
          actor: scope.actor,
          note: reason,
        }),
      )
      const after = walletView(found(await stored.find(scope, id), noun), ocs)
      const moved = `${moneyToDecimal(Math.abs(amount))} ${customer.currency}`
      const verb = amount < 0 ? 'lost' : 'got'
      const effect = `The wallet of ${JSON.stringify(customer.name)} ${verb} ${moved} (${kind}).`
      c.set('change', { before, after, reason, effect })
      return ok(c, {
        ...after,
        kind,
        amount: moneyToNumber(amount),
        amount_exact: moneyToDecimal(amount),
        reason,
      })
    },
  )

function refuse(moved: MoneyMoveResult): void {
  switch (moved.kind) {
    case 'moved':
      return
    case 'duplicate':
      if (moved.isSame) return
      throw conflict('idempotency_conflict', 'This Idempotency-Key was used for another amount')
    case 'insufficient_funds':
      throw conflict(
        'insufficient_funds',
        `Only ${moneyToDecimal(moved.availableMicros)} can be deducted`,
      )
    case 'balance_out_of_range':
      throw conflict(
        'balance_out_of_range',
        'The balance would exceed the largest that can be stored',
      )
    case 'unknown_customer':
      throw notFound(noun)
  }
}

export type WalletView = ReturnType<typeof walletView>

/** The stored balance, and what is reserved for live calls. */
function walletView(customer: CustomerView, ocs: Pick<OcsPort, 'balanceOf'>) {
  const live = ocs.balanceOf(customer.id)
  const { id, currency, balance, balance_number, credit_limit } = customer
  // As it is stored: another process may have changed it.
  const creditMicros = BigInt(live?.creditLimitMicros ?? 0)
  const availableMicros = decimalToMicros(balance) + creditMicros - (live?.reservedMicros ?? 0n)
  return {
    customer_id: id,
    currency,
    balance,
    balance_number,
    credit_limit,
    reserved: moneyToDecimal(live?.reservedMicros ?? 0),
    available: moneyToDecimal(live === undefined ? 0 : availableMicros),
    open_calls: live?.openCalls ?? 0,
  }
}
