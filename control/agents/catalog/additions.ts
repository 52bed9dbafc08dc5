/** Tools that add what a call lacks: a rate for its number, or a customer for its caller. */
import { z } from 'zod'
import { rangeOf } from '../../../schema/rules/number-ranges.ts'
import { all } from '../../../schema/sql/query.ts'
import { requestScope } from '../../auth/tenants.ts'
import { fieldsOf, type Json, pick } from '../../changes/kinds.ts'
import { badRequest, conflict } from '../../http/api-error.ts'
import { exactMoneyText, quoted } from '../../http/clean-text.ts'
import { numberOrUserName, reference } from '../../http/fields.ts'
import { overlapping } from '../../resources/customer-numbers.ts'
import { customerKind, kinds } from '../../resources/kinds.ts'
import { rateBody, rates } from '../../resources/rates.ts'
import { resourceDeps, storeOf } from '../../resources/resource.ts'
import { ownsNumber } from '../../resources/tenancy.ts'
import { chargingOf, theCustomer, thePlan } from './customers.ts'
import { defineChange, type ToolUse } from './tool.ts'

const rate = rateBody.shape

/** Stands for the id of a row that does not exist yet. */
const NEW = '0'

export const addRate = defineChange({
  name: 'add_rate',
  title: 'Add a rate',
  description:
    'Adds a rate, for calls refused with no_rate. Give rate_plan, or a customer to use its plan. ' +
    'It holds from the next call; undo_change removes it. Ask a person for the price, or ' +
    'let propose_change ask.',
  effect: 'changes',
  reason: 'required',
  expires: true,
  scopes: ['rates:write'],
  input: z.strictObject({
    rate_plan: reference.optional().describe('Id or name.'),
    customer: reference.optional().describe('Id or name; its rate plan is used.'),
    prefix: rate.prefix,
    rate_per_minute: rate.rate_per_minute.describe('Exact decimal number as text.'),
    connect_fee: rate.connect_fee.unwrap().optional(),
  }),
  output: z.object({
    rate_id: z.int().nullable().describe('Null in a dry run.'),
    rate_plan_id: z.int(),
    prefix: z.string(),
  }),
  async plan({ rate_plan, customer, prefix, rate_per_minute: price, connect_fee: fee }, use) {
    chargingOf(use)
    const planId = await thePlan(rate_plan, customer, use)
    const plan = await planWith(use, planId, prefix)
    if (plan.isPriced)
      throw conflict(
        'duplicate',
        `The rate plan ${quoted(plan.name)} has a rate for ` +
          `${prefix === '' ? 'every number' : prefix} already: lookup_rate shows it`,
      )
    const body = rateBody.parse({
      prefix,
      rate_per_minute: decimalOf(price),
      ...(fee !== undefined && { connect_fee: decimalOf(fee) }),
      rate_plan_id: planId,
    })
    const { rate_per_minute: minute, connect_fee: connect } = body
    const money = (micros: number): string => exactMoneyText(micros, plan.currency)
    let added = { id: NEW, after: fieldsOf({ prefix, rate_plan_id: planId }) as Json }
    const scope = requestScope(use.principal, use.now)
    return {
      target: { kind: 'rate' as const, id: NEW },
      row: `rate_plan ${planId}`,
      before: null,
      after: added.after,
      effect:
        `Calls to ${prefix === '' ? 'every number' : `numbers that begin with ${prefix}`} cost ` +
        `${money(minute)} a minute, by the second, and ${money(connect)} for each answered ` +
        `call, by the rate plan ${quoted(plan.name)}, from the next call${use.lasting}.`,
      affected: {},
      undo: 'restores' as const,
      preview: { rate_id: null, rate_plan_id: planId, prefix },
      async apply() {
        const id = await storeOf(rates, resourceDeps(use)).insert(body, scope)
        added = { id: String(id), after: (await kinds.rate?.read(String(id), use)) ?? null }
        return { rate_id: id, rate_plan_id: planId, prefix }
      },
      applied: () => added,
    }
  },
})

/** A parsed price in the form of a body. */
const decimalOf = (micros: number): string => (micros / 1e6).toFixed(6)

async function planWith({ store }: ToolUse, planId: number, prefix: string) {
  const query = store.db
    .selectFrom('rate_plan')
    .leftJoin('rate', (join) =>
      join.onRef('rate.rate_plan_id', '=', 'rate_plan.id').on('rate.prefix', '=', prefix),
    )
    .select(['rate_plan.name', 'rate_plan.currency', 'rate.id as rateId'])
    .where('rate_plan.id', '=', planId)
    .limit(1)
  const [row] = await all(store, query)
  if (row === undefined) throw badRequest('The rate plan was removed')
  return { name: row.name, currency: row.currency, isPriced: row.rateId !== null }
}

export const addNumber = defineChange({
  name: 'add_number',
  title: 'Add a number to a customer',
  description:
    'Gives a calling number to a customer. For calls that are refused with unknown_caller: ' +
    'the customer pays for them. ' +
    'It holds from the next call; undo_change takes the number back.',
  effect: 'changes',
  reason: 'required',
  expires: true,
  scopes: ['customers:write'],
  input: z.strictObject({
    customer: reference.describe('Id or exact name.'),
    number: numberOrUserName.describe('As the caller sends it.'),
  }),
  output: z.object({ customer_id: z.int(), name: z.string(), numbers: z.array(z.string()) }),
  async plan({ customer: wanted, number }, use) {
    const { id, name, numbers } = await theCustomer(wanted, use)
    await customerKind.admit(String(id), { from: null, to: null }, use.principal, use)
    const has = (list: readonly string[]) => list.some((each) => bare(each) === bare(number))
    if (!has(numbers)) {
      await refuseForeign(number, use)
      await refuseTaken(number, use)
    }
    const before = { numbers: [...numbers] }
    const after = has(numbers) ? before : { numbers: [...numbers, number] }
    const scope = requestScope(use.principal, use.now)
    let stored: Json = after
    return {
      target: { kind: 'customer' as const, id: String(id) },
      before,
      after,
      effect: has(numbers)
        ? `Nothing changes: the customer ${quoted(name)} has the number already.`
        : `The customer ${quoted(name)} pays for calls from ${quoted(number)}, from the next ` +
          `call${use.lasting}.`,
      affected: {},
      undo: 'restores' as const,
      preview: { customer_id: id, name, numbers: before.numbers },
      async apply() {
        await customerKind.restore(String(id), after, use, scope)
        const whole = fieldsOf(await customerKind.read(String(id), use)) ?? {}
        stored = pick(whole, ['numbers'])
        return { customer_id: id, name, numbers: after.numbers }
      },
      applied: () => ({ id: String(id), after: stored }),
    }
  },
})

const bare = (number: string): string => number.replace(/^\+/, '')

/**
 * A tenant gives only its own numbers: a dry run and a proposal say so, and not only the approval.
 */
async function refuseForeign(number: string, { store, principal }: ToolUse): Promise<void> {
  const { tenantId } = principal
  if (tenantId !== null && !(await ownsNumber(store, tenantId, number)))
    throw badRequest(
      'The number is in no number block of the tenant: the platform assigns these. Nothing ' +
        'was changed',
    )
}

/** The refusal does not say who owns the number: it may be another tenant. */
async function refuseTaken(number: string, { store }: ToolUse): Promise<void> {
  const row = await overlapping(store, rangeOf(number))
  if (row !== undefined && (row.customer_id !== null || row.first_number !== row.last_number))
    throw conflict('duplicate', 'Another customer has this number. Nothing was changed')
}
