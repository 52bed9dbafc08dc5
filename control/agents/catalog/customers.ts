/** Tools for customers, their money and their prices. No tool moves money. */
import { z } from 'zod'
import { moneyToDecimal, timeToText } from '../../../schema/columns.ts'
import { entryKinds } from '../../../schema/contracts/field-values.ts'
import type { OcsPort } from '../../../schema/contracts/charging.ts'
import { all } from '../../../schema/sql/query.ts'
import { pick } from '../../changes/kinds.ts'
import { ApiError, badRequest } from '../../http/api-error.ts'
import { exactMoneyText, quoted } from '../../http/clean-text.ts'
import { phoneNumber, reference, text } from '../../http/fields.ts'
import { listLedger } from '../../money/ledger-store.ts'
import { periodInput, periodOf } from '../../observe/causes/state-history.ts'
import { customers, customerBody } from '../../resources/customers.ts'
import { resourceDeps, storeOf } from '../../resources/resource.ts'
import { explanation } from '../../resources/rate-routes.ts'
import { resolve } from '../../resources/references.ts'
import {
  defineChange,
  defineTool,
  endOfPage,
  pageInput,
  pageOutput,
  sliceOf,
  type ToolUse,
  time,
} from './tool.ts'
import { requestScope, type RequestScope } from '../../auth/tenants.ts'
import { customerKind } from '../../resources/kinds.ts'

const amount = z.string().describe('Exact decimal number as text.')

export const getCustomerBalance = defineTool({
  name: 'get_customer_balance',
  title: 'Get the balance of a customer',
  description:
    'Returns the balance and the limits of a customer. With the amount reserved for its ' +
    'live calls, and the amount available. ' +
    'list_customers shows several; get_ledger what moved it; set_customer_limits sets limits.',
  effect: 'reads',
  scopes: ['wallets:read'],
  input: z.strictObject({ customer: reference.describe('Id (a number) or exact name.') }),
  output: z.object({
    customer_id: z.int(),
    name: z.string(),
    is_active: z.boolean(),
    currency: z.string(),
    balance: amount,
    credit_limit: z.number(),
    reserved: amount,
    available: amount,
    open_calls: z.int(),
    max_concurrent_calls: z.int().describe('Calls at once; 0: no limit.'),
    max_cps: z.int().describe('Calls started in a second; 0: no limit.'),
    max_daily_spend: z.number().describe('0: no limit.'),
    is_balance_low: z
      .boolean()
      .describe('Below its threshold, or the next call would be refused for want of money.'),
  }),
  async run({ customer: wanted }, use) {
    const ocs = chargingOf(use)
    const customer = await theCustomer(wanted, use)
    const live = ocs.balanceOf(customer.id)
    const { id, name, is_active, currency, balance, credit_limit, is_balance_low } = customer
    return {
      customer_id: id,
      name,
      is_active,
      currency,
      balance,
      credit_limit,
      is_balance_low,
      max_concurrent_calls: customer.max_concurrent_calls,
      max_cps: customer.max_cps,
      max_daily_spend: customer.max_daily_spend,
      reserved: moneyToDecimal(live?.reservedMicros ?? 0),
      available: moneyToDecimal(live?.availableMicros ?? 0),
      open_calls: live?.openCalls ?? 0,
    }
  },
})

export const lookupRate = defineTool({
  name: 'lookup_rate',
  title: 'Look up the price of a call',
  description:
    'Returns the rate for a number, and the price of a call. Part by part, for a given duration. ' +
    'Give the rate plan, or a customer to use its rate plan. Prefer simulate_call for a ' +
    'call: it also says who pays, and whether it goes through.',
  effect: 'reads',
  scopes: ['rates:read'],
  input: z.strictObject({
    number: phoneNumber({ least: 1, most: 64 }).describe('The called number, as dialled.'),
    rate_plan: reference.optional().describe('Id or name.'),
    customer: reference.optional().describe('Id or name; its rate plan is used.'),
    duration: z.int().min(0).max(86_400).default(60).describe('Seconds.'),
  }),
  output: z.object({
    number: z.string(),
    at: time,
    rate_plan_id: z.int(),
    prefix: z.string(),
    currency: z.string(),
    blocked: z.boolean().describe('Calls to this number are refused.'),
    period: z.string().nullable(),
    rate_per_minute_exact: amount,
    first_increment: z.int(),
    increment: z.int(),
    duration: z.int(),
    charged_seconds: z.int(),
    parts: z.array(z.object({ part: z.string(), seconds: z.int(), amount_exact: amount })),
    cost_exact: amount.nullable().describe('Null when blocked.'),
  }),
  async run({ number, rate_plan, customer, duration }, use) {
    const ocs = chargingOf(use)
    const at = use.now()
    const planId = await thePlan(rate_plan, customer, use)
    const payer = customer === undefined ? undefined : await theCustomer(customer, use)
    const quote = ocs.quote(planId, number, duration, at, payer?.id)
    if (quote === undefined)
      throw new ApiError(
        404,
        'no_rate',
        'The rate plan has no rate for this number: calls to it are refused. ' +
          'Check that the number has the same format as the rates (usually with country ' +
          'code, without +)',
      )
    return { number, at: timeToText(at), rate_plan_id: planId, ...explanation(quote, duration) }
  },
})

export function chargingOf({ ocs }: ToolUse): OcsPort {
  if (ocs !== undefined) return ocs
  throw new ApiError(
    503,
    'charging_elsewhere',
    'Another system charges the calls of this platform. Customers and rates are in that system',
  )
}

/** The store of customers, which knows the money that is held for live calls. */
function customersFor(use: ToolUse) {
  chargingOf(use)
  return storeOf(customers, resourceDeps(use))
}

/** @throws {ApiError} the caller sees no such customer. */
export async function theCustomer(wanted: string | number, use: ToolUse) {
  const scope = toolScope(use)
  const id = await resolve(use.store, 'customer', wanted, { tenantId: 'any', scope })
  const customer = id === null ? undefined : await customersFor(use).find(scope, id)
  if (customer !== undefined) return customer
  throw new ApiError(
    404,
    'not_found',
    'Customer not found. A customer is named by its id or exact name',
  )
}

export async function thePlan(
  plan: string | number | undefined,
  customer: string | number | undefined,
  use: ToolUse,
): Promise<number> {
  const owner = { tenantId: 'any', scope: toolScope(use) } as const
  const id =
    plan === undefined && customer !== undefined
      ? (await theCustomer(customer, use)).rate_plan_id
      : await resolve(use.store, 'rate_plan', plan ?? null, owner)
  if (id !== null) return id
  throw new ApiError(
    400,
    'no_rate_plan',
    customer === undefined
      ? `Give rate_plan or customer. Rate plans: ${await planNames(use)}`
      : 'The customer has no rate plan: its calls are refused. Give rate_plan to use another plan',
  )
}

async function planNames({ store, principal: { tenantId } }: ToolUse): Promise<string> {
  let query = store.db.selectFrom('rate_plan').select('name').orderBy('id').limit(10)
  if (tenantId !== null) query = query.where('tenant_id', '=', tenantId)
  const names = (await all(store, query)).map(({ name }) => JSON.stringify(name))
  return names.length === 0 ? 'none' : names.join(', ')
}

const toolScope = ({ principal, now }: ToolUse): RequestScope => requestScope(principal, now)

const decimal = z.string()

export const listCustomers = defineTool({
  name: 'list_customers',
  title: 'List customers',
  description:
    'Lists customers by name, with balance and available money. low_balance shows those ' +
    'whose next call would be refused, or who are below their threshold.',
  effect: 'reads',
  readsMuch: true,
  scopes: ['customers:read', 'wallets:read'],
  input: z.strictObject({
    search: text(100).optional().describe('Part of the name or of the e-mail address.'),
    low_balance: z.boolean().default(false).describe('Only those.'),
    ...pageInput(100, 20),
  }),
  output: z.object({
    customers: z.array(
      z.object({
        id: z.int(),
        name: z.string(),
        tenant: z.string().nullable(),
        is_active: z.boolean(),
        rate_plan: z.string().nullable(),
        numbers: z.array(z.string()).describe('The first three.'),
        currency: z.string(),
        balance: decimal,
        credit_limit: z.number(),
        max_concurrent_calls: z.int().describe('0: no limit.'),
        max_cps: z.int().describe('0: no limit.'),
        max_daily_spend: z.number().describe('0: no limit.'),
        available: decimal.describe('Balance and credit, without what live calls hold.'),
        is_balance_low: z.boolean(),
      }),
    ),
    ...pageOutput,
  }),
  async run({ search, low_balance, ...page }, use) {
    const ocs = chargingOf(use)
    const slice = { ...sliceOf(page), search, is_balance_low: low_balance }
    const { rows, total } = await customersFor(use).list(toolScope(use), slice)
    return {
      customers: rows.map((row) => ({
        ...row,
        numbers: row.numbers.slice(0, 3),
        available: moneyToDecimal(ocs.balanceOf(row.id)?.availableMicros ?? 0),
      })),
      ...endOfPage(page, rows.length, total),
    }
  },
})

export const getLedger = defineTool({
  name: 'get_ledger',
  title: 'Get the ledger of a customer',
  description:
    'Lists what moved the balance of a customer in a period, newest first. Debits of calls ' +
    '(ref is the call_uuid), top-ups, refunds and adjustments with actor and note. Sums ' +
    'are of the entries shown.',
  effect: 'reads',
  readsMuch: true,
  scopes: ['wallets:read'],
  input: z.strictObject({
    customer: reference.describe('Id (a number) or exact name.'),
    ...periodInput,
    kind: z.enum(entryKinds).optional(),
    ...pageInput(100, 20),
  }),
  output: z.object({
    customer_id: z.int(),
    name: z.string(),
    currency: z.string(),
    balance: decimal,
    entries: z.array(
      z.object({
        at: time,
        kind: z.enum(entryKinds),
        amount: decimal,
        balance_after: decimal,
        ref: z.string(),
        actor: z.string(),
        note: z.string().nullable(),
      }),
    ),
    sums: z.record(z.string(), decimal).describe('By kind.'),
    ...pageOutput,
  }),
  async run({ customer: wanted, start, end, kind, ...page }, use) {
    const { id, name, currency, balance } = await theCustomer(wanted, use)
    const { from, before } = periodOf({ start, end }, use.now(), { longestDays: 400 })
    const filter = { kind, start_date: from, end_date: before }
    const { rows, total } = await listLedger(use.store, id, filter, sliceOf(page))
    const entries = rows.map(({ amount_exact, balance_after_exact, created_at, ...row }) => ({
      ...row,
      at: created_at,
      amount: amount_exact,
      balance_after: balance_after_exact,
    }))
    const ended = endOfPage(page, rows.length, total)
    return { customer_id: id, name, currency, balance, entries, sums: sumsOf(rows), ...ended }
  },
})

function sumsOf(rows: readonly { readonly kind: string; readonly amount: number }[]) {
  const sums = new Map<string, bigint>()
  for (const { kind, amount: units } of rows)
    sums.set(kind, (sums.get(kind) ?? 0n) + BigInt(Math.round(units * 1e6)))
  return Object.fromEntries([...sums].map(([kind, micros]) => [kind, moneyToDecimal(micros)]))
}

const body = customerBody.shape

/** The limits as a change of a customer has them. */
const limits = z.object({
  credit_limit_micros: z.int(),
  max_concurrent_calls: z.int(),
  max_cps: z.int(),
  max_daily_spend_micros: z.int(),
})

type CustomerLimits = z.output<typeof limits>

export const setCustomerLimits = defineChange({
  name: 'set_customer_limits',
  title: 'Set the limits of a customer',
  description:
    'Changes the credit, calls at once and daily spend of a customer. ' +
    'It moves no money. Give a duration: a person tops up meanwhile. get_customer_balance ' +
    'shows the balance.',
  effect: 'destroys',
  reason: 'required',
  expires: true,
  scopes: ['customers:write', 'wallets:write'],
  input: z.strictObject({
    customer: reference.describe('Id or exact name.'),
    credit_limit: body.credit_limit.unwrap().optional(),
    max_concurrent_calls: body.max_concurrent_calls.unwrap().optional().describe('0: no limit.'),
    max_cps: body.max_cps.unwrap().optional().describe('Calls per second; 0: no limit.'),
    max_daily_spend: body.max_daily_spend.unwrap().optional().describe('0: no limit.'),
  }),
  output: z.object({
    customer_id: z.int(),
    name: z.string(),
    credit_limit: amount,
    max_concurrent_calls: z.int(),
    max_cps: z.int(),
    max_daily_spend: amount,
  }),
  async plan(input, use) {
    const { customer: wanted, credit_limit, max_concurrent_calls, max_cps, max_daily_spend } = input
    const given = Object.entries({
      credit_limit_micros: credit_limit,
      max_concurrent_calls,
      max_cps,
      max_daily_spend_micros: max_daily_spend,
    }).flatMap(([limit, value]) => (value === undefined ? [] : [[limit, value] as const]))
    const { id, name, currency } = await theCustomer(wanted, use)
    await customerKind.admit(String(id), { from: null, to: null }, use.principal, use)
    const present = limits.safeParse(await customerKind.read(String(id), use))
    if (!present.success || given.length === 0)
      throw badRequest('Give at least one limit; get_customer_balance shows the balance')
    const before = present.data
    const changed = Object.fromEntries(given)
    const after: CustomerLimits = { ...before, ...changed }
    const view = (limits: CustomerLimits) => ({
      customer_id: id,
      name,
      credit_limit: moneyToDecimal(limits.credit_limit_micros),
      max_concurrent_calls: limits.max_concurrent_calls,
      max_cps: limits.max_cps,
      max_daily_spend: moneyToDecimal(limits.max_daily_spend_micros),
    })
    return {
      target: { kind: 'customer' as const, id: String(id) },
      // Only the fields of the input: a change by a person to the other fields meanwhile stays.
      before: pick(before, Object.keys(changed)),
      after: changed,
      effect:
        `The limits of the customer ${quoted(name)} hold from the next call${use.lasting}: ` +
        `${changesIn(before, after, currency)}.`,
      affected: { live_calls: use.ocs?.balanceOf(id)?.openCalls ?? 0 },
      undo: 'restores' as const,
      preview: view(before),
      async apply() {
        await customerKind.restore(String(id), changed, use, toolScope(use))
        return view(after)
      },
    }
  },
})

/** A limit of 0 means that there is none; a credit of 0, that nothing is granted. */
function changesIn(before: CustomerLimits, after: CustomerLimits, currency: string): string {
  const owed = (micros: number): string => exactMoneyText(micros, currency)
  const count = (limit: number): string => (limit === 0 ? 'without a limit' : `${limit}`)
  const spent = (micros: number): string => (micros === 0 ? 'without a limit' : owed(micros))
  const parts = [
    ['it may owe', before.credit_limit_micros, after.credit_limit_micros, owed],
    ['calls at once', before.max_concurrent_calls, after.max_concurrent_calls, count],
    ['calls per second', before.max_cps, after.max_cps, count],
    ['spend per day', before.max_daily_spend_micros, after.max_daily_spend_micros, spent],
  ] as const
  const changed = parts
    .filter(([, from, to]) => from !== to)
    .map(([what, from, to, shown]) => `${what} ${shown(to)}, was ${shown(from)}`)
  return changed.length === 0 ? 'nothing changes' : changed.join('; ')
}
