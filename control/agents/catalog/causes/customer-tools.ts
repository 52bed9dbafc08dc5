/** Tools for customers and their money: who is short of it, and what has moved. No tool moves money. */
import { z } from 'zod'
import { entryKinds } from '../../../../schema/contracts/field-values.ts'
import { moneyToDecimal } from '../../../../schema/columns.ts'
import { listLedger } from '../../../money/ledger-store.ts'
import { reference, text } from '../../../http/fields.ts'
import { defineTool } from '../../tool.ts'
import { chargingOf, customersFor, theCustomer, toolScope } from '../money-tools.ts'
import { time } from '../shapes.ts'
import { periodInput, periodOf } from '../../../observe/causes/period.ts'

const amount = z.string()

export const listCustomers = defineTool({
  name: 'list_customers',
  title: 'List customers',
  description:
    'Lists customers by name, with balance and available money. low_balance shows those whose next call would be refused, or who are below their threshold.',
  effect: 'reads',
  readsMuch: true,
  scopes: ['customers:read', 'wallets:read'],
  input: z.strictObject({
    search: text(100).optional().describe('Part of the name or of the e-mail address.'),
    low_balance: z.boolean().default(false).describe('Only those.'),
    limit: z.int().min(1).max(100).default(20),
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
        balance: amount,
        credit_limit: z.number(),
        available: amount.describe('Balance and credit, without what live calls hold.'),
        is_balance_low: z.boolean(),
      }),
    ),
    total: z.int(),
  }),
  async run({ search, low_balance, limit }, use) {
    const ocs = chargingOf(use)
    const slice = { limit, offset: 0, search }
    const { rows, total } = await customersFor(use).list(toolScope(use), slice, low_balance)
    return {
      customers: rows.map((row) => ({
        ...row,
        numbers: row.numbers.slice(0, 3),
        available: moneyToDecimal(ocs.balanceOf(row.id)?.availableMicros ?? 0),
      })),
      total,
    }
  },
})

export const getLedger = defineTool({
  name: 'get_ledger',
  title: 'Get the ledger of a customer',
  description:
    'Lists what moved the balance of a customer in a period, newest first. Debits of calls (ref is the call_uuid), top-ups, refunds and adjustments with actor and note. Sums are of the entries shown.',
  effect: 'reads',
  readsMuch: true,
  scopes: ['wallets:read'],
  input: z.strictObject({
    customer: reference.describe('Id (a number) or exact name.'),
    ...periodInput,
    kind: z.enum(entryKinds).optional(),
    limit: z.int().min(1).max(100).default(20),
  }),
  output: z.object({
    customer_id: z.int(),
    name: z.string(),
    currency: z.string(),
    balance: amount,
    entries: z.array(
      z.object({
        at: time,
        kind: z.enum(entryKinds),
        amount,
        balance_after: amount,
        ref: z.string(),
        actor: z.string(),
        note: z.string().nullable(),
      }),
    ),
    sums: z.record(z.string(), amount).describe('By kind.'),
    total: z.int().describe('Entries of the period; narrow the period for older ones.'),
  }),
  async run({ customer: wanted, start, end, kind, limit }, use) {
    const { id, name, currency, balance } = await theCustomer(wanted, use)
    const { from, before } = periodOf({ start, end }, use.now(), { longestDays: 400 })
    const filter = { kind, start_date: from, end_date: before }
    const { rows, total } = await listLedger(use.store, id, filter, { limit, offset: 0 })
    const entries = rows.map(({ amount_exact, balance_after_exact, created_at, ...row }) => ({
      ...row,
      at: created_at,
      amount: amount_exact,
      balance_after: balance_after_exact,
    }))
    return { customer_id: id, name, currency, balance, entries, sums: sumsOf(rows), total }
  },
})

function sumsOf(rows: readonly { readonly kind: string; readonly amount: number }[]) {
  const sums = new Map<string, bigint>()
  for (const { kind, amount: units } of rows)
    sums.set(kind, (sums.get(kind) ?? 0n) + BigInt(Math.round(units * 1e6)))
  return Object.fromEntries([...sums].map(([kind, micros]) => [kind, moneyToDecimal(micros)]))
}
