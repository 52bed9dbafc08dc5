/** Tools for balances and prices. No tool moves money. */
import { type RequestScope, requestScope } from '../../auth/tenants.ts'
import { z } from 'zod'
import { moneyToDecimal, timeToText } from '../../../schema/columns.ts'
import type { OcsPort } from '../../../schema/contracts/ocs.ts'
import { all } from '../../../schema/sql/query.ts'
import { CustomerStore } from '../../resources/customers/customer-store.ts'
import { explanation } from '../../resources/rates/price-explanation.ts'
import { ApiError } from '../../http/api-error.ts'
import { phoneNumber, reference } from '../../http/fields.ts'
import { resolve } from '../../resources/references.ts'
import { defineTool, type ToolUse } from '../tool.ts'
import { time } from './shapes.ts'

const amount = z.string().describe('Exact decimal number as text.')

export const getCustomerBalance = defineTool({
  name: 'get_customer_balance',
  title: 'Get the balance of a customer',
  description:
    'Returns the balance of a customer, the amount reserved for its live calls, and the amount available. ' +
    'list_customers shows several; get_ledger what moved it.',
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
    'Returns the current rate for a number, and the price of a call of a given duration, part by part. ' +
    'Give the rate plan, or a customer to use its rate plan. Prefer simulate_call for a call: it also says who pays, and whether it goes through.',
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
    const quote = ocs.quote(planId, number, duration, at)
    if (quote === undefined)
      throw new ApiError(
        404,
        'no_rate',
        'The rate plan has no rate for this number: calls to it are refused. ' +
          'Check that the number has the same format as the rates (usually with country code, without +)',
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

/** With what is held for live calls. */
export function customersFor(use: ToolUse): CustomerStore {
  const ocs = chargingOf(use)
  return new CustomerStore(use.store, ocs.ledger, (id) => ocs.balanceOf(id)?.reservedMicros ?? 0n)
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

async function thePlan(
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

export const toolScope = ({ principal, now }: ToolUse): RequestScope => requestScope(principal, now)
