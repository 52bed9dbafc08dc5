/** What the kept sums say of whole days, with what they lack. */
import { DAY_MS } from '../../../schema/clock.ts'
import { sql, type SqlBool } from 'kysely'
import { all, first } from '../../../schema/sql/query.ts'
import { ALL, NONE, OTHERS } from '../sums/call-filters.ts'
import { newRecords, type Watermark } from '../sums/roll-up.ts'
import type { Place } from '../sums/places.ts'
import { type CallSum, callSumColumns } from './call-sums.ts'
import { type DayTaker, takeCalls } from './comparison.ts'

/** About: how many calls the sums have of these days. */
export async function keptCalls(
  { sums }: Place,
  tenantId: number | null,
  days: readonly number[],
): Promise<number> {
  const query = sums.db
    .selectFrom('call_sum')
    .select(sql<number>`CAST(coalesce(sum(calls), 0) AS bigint)`.as('calls'))
    .where('day', 'in', days)
    .where('dimension', '=', 'denial_code')
    .where('customer_id', '=', ALL)
    .$if(tenantId !== null, (own) => own.where('tenant_id', '=', tenantId ?? NONE))
  return (await first(sums, query))?.calls ?? 0
}

/** Gives `taker` the groups of a day; of those that cost nothing, or of which no call was refused, nothing is told. */
export async function takeKeptDay(
  { sums }: Place,
  tenantId: number | null,
  day: number,
  taker: DayTaker,
): Promise<void> {
  const { db } = sums
  const rows = db
    .selectFrom('call_sum')
    .select(['member', 'first_at as firstAt', 'last_at as lastAt'])
    .where('day', '=', day)
    .$if(tenantId !== null, (own) => own.where('tenant_id', '=', tenantId ?? NONE))
  const spent = rows
    .select(['customer_id as customerId', 'currency', 'answered'])
    .select(sql<number>`CAST(cost_micros AS double precision)`.as('costMicros'))
    .where('dimension', '=', 'rate_prefix')
    .where(sql<SqlBool>`cost_micros <> 0`)
  for (const { member, currency, answered, ...sum } of await all(sums, spent)) {
    const prefix = member === '' || member === OTHERS ? null : member
    taker.spent({ ...sum, prefix, currency: currency || null, calls: answered })
  }
  const refused = rows
    .select(['customer_id as customerId', sql<number>`calls - answered`.as('calls')])
    .where('dimension', '=', 'denial_code')
    .where('customer_id', '>', ALL)
    .where('member', '<>', '')
    .where(sql<SqlBool>`calls > answered`)
  for (const { member, customerId, ...sum } of await all(sums, refused))
    taker.refused({ ...sum, code: member, customerId: customerId === NONE ? null : customerId })
  const carried = rows
    .select(['answered', sql<number>`calls - denied`.as('calls')])
    .where('dimension', '=', 'carrier')
    .where('customer_id', '=', ALL)
    .where('member', 'not in', ['', OTHERS])
    .where(sql<SqlBool>`calls > denied`)
  for (const { member, ...sum } of await all(sums, carried))
    taker.carried({ ...sum, carrier: member })
}

/** Calls by day, in milliseconds UTC. */
export type Tail = ReadonlyMap<number, readonly CallSum[]>

/** Records of days that the sums do not have yet, and costs that were changed since. */
export async function tailOf(
  { store }: Place,
  watermark: Watermark,
  tenantId: number | null,
  days: readonly number[],
): Promise<Tail> {
  const { db } = store
  const isNew = newRecords(watermark)
  const start = Math.min(...days)
  const end = Math.max(...days) + DAY_MS
  const conditions = [
    // The plus keeps SQLite from other indexes: the few new records are at the end of the ids.
    sql<SqlBool>`+cdr.start_stamp >= ${start} AND +cdr.start_stamp < ${end}`,
    ...(tenantId === null ? [] : [sql<SqlBool>`+cdr.tenant_id = ${tenantId}`]),
  ]
  const day = sql<number>`cdr.start_stamp - cdr.start_stamp % ${sql.lit(DAY_MS)}`.as('day')
  let records = db
    .selectFrom('cdr')
    .select([day, 'customer_id as customerId', 'carrier', 'rate_prefix as prefix'])
    .select(['denial_code as denial', 'currency', ...callSumColumns])
    .where(isNew)
    .groupBy(sql`1`)
    .groupBy(['customer_id', 'carrier', 'rate_prefix', 'denial_code', 'currency'])
  let changes = db
    .selectFrom('cdr_cost_change as change')
    .innerJoin('cdr', 'cdr.id', 'change.cdr_id')
    .select([day, 'cdr.customer_id as customerId', 'cdr.rate_prefix as prefix', 'change.currency'])
    .select([
      sql<number>`CAST(sum(change.cost_micros) AS double precision)`.as('costMicros'),
      sql<number>`min(cdr.start_stamp)`.as('firstAt'),
      sql<number>`max(cdr.start_stamp)`.as('lastAt'),
    ])
    .where('change.id', '>', watermark.changesUpTo)
    .where(sql<SqlBool>`NOT ${isNew}`)
    .groupBy(sql`1`)
    .groupBy(['cdr.customer_id', 'cdr.rate_prefix', 'change.currency'])
  for (const condition of conditions) {
    records = records.where(condition)
    changes = changes.where(condition)
  }
  const tail = new Map<number, CallSum[]>()
  const add = ({ day: at, ...sum }: CallSum & { readonly day: number }): void => {
    const known = tail.get(at)
    if (known === undefined) tail.set(at, [sum])
    else known.push(sum)
  }
  for (const row of await all(store, records)) add(row)
  for (const row of await all(store, changes))
    add({ ...row, carrier: null, denial: null, calls: 0, answered: 0 })
  return tail
}

export function takeTail(tail: Tail, day: number, taker: DayTaker): void {
  for (const sum of tail.get(day) ?? []) takeCalls(sum, taker)
}
