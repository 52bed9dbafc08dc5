/** A re-rating job as the API and its event show it. */
import { z } from 'zod'
import { moneyToDecimal, timeToText } from '../../../schema/columns.ts'
import type { ReratingKind } from '../../../schema/tables/reratings.ts'
import { count, decimal, exampleTime, moment, timeOrNull } from '../../http/view-fields.ts'
import type { StoredRerating } from './rerating-store.ts'

export const reratingKinds = ['sold', 'bought'] as const satisfies readonly ReratingKind[]

export const counted = {
  calls: count.describe('Calls that the plan prices.'),
  changed: count.describe('Calls that get another price or prefix.'),
  without_rate: count.describe('The plan has no price for them: they stay as they are.'),
  unknown_number: count.describe(
    'Their records do not have the number that decided the price: they stay as they are.',
  ),
  other_currency: count.describe('Priced in another currency: they stay as they are.'),
  currency: z.string(),
  before_exact: decimal.describe('Sum of the calls that the plan prices.'),
  after_exact: decimal,
  difference_exact: decimal,
}

export const exampleCounted = {
  calls: 2,
  changed: 1,
  without_rate: 0,
  unknown_number: 0,
  other_currency: 0,
  currency: 'USD',
  before_exact: '0.30',
  after_exact: '0.20',
  difference_exact: '-0.10',
}

export const jobFields = {
  id: z.int(),
  state: z
    .enum(['rating', 'posting', 'done', 'undoing', 'returning', 'undone'])
    .describe('`posting`, `returning`: wallets are corrected.'),
  kind: z.enum(reratingKinds),
  rate_plan_id: z.int(),
  rate_plan: z.string(),
  from: moment,
  to: moment,
  customer_id: z.int().nullable(),
  carrier_id: z.int().nullable(),
  prefix: z.string(),
  prices: z.enum(['at_call', 'now']),
  done: count.describe('Records of the period that were looked at.'),
  total: count,
  ...counted,
  restored: count.describe('Records that the undo has restored.'),
  kept: count.describe('Records that were changed since: the undo leaves them as they are.'),
  started_by: z.string(),
  started_at: moment,
  ended_at: moment.nullable(),
  undone_by: z.string().nullable(),
  undone_at: moment.nullable(),
}

export const jobView = z.strictObject(jobFields).meta({ id: 'Rerating' })

export type ReratingView = z.output<typeof jobView>

export const exampleJob = {
  id: 1,
  state: 'done',
  kind: 'bought',
  rate_plan_id: 1,
  rate_plan: 'cost of north',
  from: exampleTime,
  to: exampleTime,
  customer_id: null,
  carrier_id: null,
  prefix: '',
  prices: 'at_call',
  done: 5,
  total: 5,
  ...exampleCounted,
  restored: 0,
  kept: 0,
  started_by: 'user:admin',
  started_at: exampleTime,
  ended_at: exampleTime,
  undone_by: null,
  undone_at: null,
}

export const jobOf = (row: StoredRerating): ReratingView => ({
  id: row.id,
  state: row.state,
  kind: row.kind,
  rate_plan_id: row.rate_plan_id,
  rate_plan: row.rate_plan,
  from: timeToText(row.from_at),
  to: timeToText(row.before_at),
  customer_id: row.customer_id,
  carrier_id: row.carrier_id,
  prefix: row.prefix,
  prices: row.priced_at === null ? 'at_call' : 'now',
  done: row.looked_at,
  total: Math.max(row.total, row.looked_at),
  calls: row.calls,
  changed: row.changed,
  without_rate: row.without_rate,
  unknown_number: row.unknown_number,
  other_currency: row.other_currency,
  currency: row.currency,
  ...amountsOf(BigInt(row.before), BigInt(row.after)),
  restored: row.restored,
  kept: row.kept,
  started_by: row.started_by,
  started_at: timeToText(row.started_at),
  ended_at: timeOrNull(row.ended_at),
  undone_by: row.undone_by,
  undone_at: timeOrNull(row.undone_at),
})

export const amountsOf = (before: bigint, after: bigint) => ({
  before_exact: moneyToDecimal(before),
  after_exact: moneyToDecimal(after),
  difference_exact: moneyToDecimal(after - before),
})
