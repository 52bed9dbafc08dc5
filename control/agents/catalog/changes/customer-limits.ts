/** The tool that changes for a while what a customer may owe and call. It moves no money. */
import { z } from 'zod'
import { moneyToDecimal } from '../../../../schema/columns.ts'
import { customerKind } from '../../../resources/kinds/document-kinds.ts'
import { pick } from '../../../changes/kinds.ts'
import { customerBody } from '../../../resources/customers/customer-body.ts'
import { badRequest } from '../../../http/api-error.ts'
import { reference } from '../../../http/fields.ts'
import { defineChange } from '../../change-tool.ts'
import { quoted } from '../../../http/clean-text.ts'
import { theCustomer, toolScope } from '../money-tools.ts'

const body = customerBody.shape

/** As a change of a customer has them. */
const limits = z.object({
  credit_limit_micros: z.int(),
  max_concurrent_calls: z.int(),
  max_cps: z.int(),
  max_daily_spend_micros: z.int(),
})

type CustomerLimits = z.output<typeof limits>

const amount = z.string().describe('Exact decimal number as text.')

export const setCustomerLimits = defineChange({
  name: 'set_customer_limits',
  title: 'Set the limits of a customer',
  description:
    'Changes how far the balance of a customer may go below zero, and how much it may call at once and spend a day. ' +
    'It moves no money. Give a duration: a person tops up meanwhile. get_customer_balance shows the balance.',
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
    const { id, name } = await theCustomer(wanted, use)
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
      // Only those that are given: what a person sets of the others meanwhile stays.
      before: pick(before, Object.keys(changed)),
      after: changed,
      effect: `The limits of the customer ${quoted(name)} hold from the next call: ${changesIn(before, after)}.`,
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

function changesIn(before: CustomerLimits, after: CustomerLimits): string {
  const told = [
    ['it may owe', before.credit_limit_micros, after.credit_limit_micros, true],
    ['calls at once', before.max_concurrent_calls, after.max_concurrent_calls, false],
    ['calls per second', before.max_cps, after.max_cps, false],
    ['spend per day', before.max_daily_spend_micros, after.max_daily_spend_micros, true],
  ] as const
  const shown = (limit: number, isMoney: boolean) => (isMoney ? moneyToDecimal(limit) : limit)
  const changed = told
    .filter(([, from, to]) => from !== to)
    .map(
      ([what, from, to, isMoney]) => `${what} ${shown(to, isMoney)}, was ${shown(from, isMoney)}`,
    )
  return changed.length === 0 ? 'nothing changes' : changed.join('; ')
}
