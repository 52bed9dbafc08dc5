/** Which kept sums answer a question, and what they say. */
import { type RawBuilder, sql, type SqlBool } from 'kysely'
import { DAY_MS } from '../../../schema/clock.ts'
import { first, rawRows } from '../../../schema/sql/query.ts'
import { conditionsOf, isMember, memberFilters } from './call-filters.ts'
import {
  ALL,
  type Dimension,
  type Grouping,
  type MemberDimension,
  memberOf,
  OTHERS,
  paired,
  PREFIX_LENGTH,
} from './dimensions.ts'
import { folded, type GroupValues, ofCostChange, ofRecord, ofSum } from './figures.ts'
import type { Place } from './places.ts'
import type { Watermark } from './roll-up.ts'
import type { SummaryRequest } from './summary-request.ts'

/** The sums of one dimension, of all customers, of each, or of one. */
export interface KeptSums {
  readonly dimension: Dimension
  readonly customer: 'all' | 'each' | number
  readonly member: { readonly dimension: MemberDimension; readonly value: string } | undefined
}

/** Undefined: only the records say it. */
export function keptSumsFor({ groupBy, filters }: SummaryRequest): KeptSums | undefined {
  const { customerId, members, direction, disposition, minCostMicros } = filters
  if (direction !== undefined || disposition !== undefined || minCostMicros !== undefined)
    return undefined
  const [filter, ...more] = memberFilters(members)
  if (more.length > 0) return undefined
  if (filter?.[0] === 'callee_prefix' && filter[1].length > PREFIX_LENGTH) return undefined
  if (groupBy === 'minute')
    return filter === undefined && customerId === undefined
      ? { dimension: 'minute', customer: 'all', member: undefined }
      : undefined
  const member = filter && { dimension: filter[0], value: filter[1] }
  const own = groupBy === 'customer' || groupBy === 'tenant' ? undefined : groupBy
  if (own !== undefined && member !== undefined && own !== member.dimension) return undefined
  const dimension = own ?? member?.dimension
  // Few groups, each with its tenant.
  if (dimension === undefined)
    return groupBy === 'tenant' && customerId === undefined
      ? { dimension: 'denial_code', customer: 'all', member }
      : { dimension: 'customer', customer: customerId ?? 'all', member }
  const customer = customerId ?? (groupBy === 'customer' ? 'each' : 'all')
  return customer === 'all' || paired.has(dimension) ? { dimension, customer, member } : undefined
}

/** Days of one statement: about 0.1 s. */
const DAYS = 16

/** Whole days, in periods of one statement each. */
export function* stepsOf([from, before]: readonly [number, number]): Generator<
  readonly [number, number]
> {
  for (let day = from; day < before; day += DAYS * DAY_MS)
    yield [day, Math.min(before, day + DAYS * DAY_MS)]
}

/** What the sums of the days of one step say. Undefined: some of what is asked is in a group of others. */
export async function readSums(
  { sums }: Place,
  kept: KeptSums,
  { groupBy, tenantId }: SummaryRequest,
  [from, before]: readonly [number, number],
): Promise<readonly GroupValues[] | undefined> {
  const { member } = kept
  const column = sql.ref<string>('member')
  const days = Array.from({ length: (before - from) / DAY_MS }, (_, index) => from + index * DAY_MS)
  let rows = sums.db
    .selectFrom('call_sum')
    .where('day', 'in', days)
    .where('dimension', '=', dimensionOf(kept, tenantId))
    .where(sql<boolean>`${customersOf(kept)}`)
  if (tenantId !== null) rows = rows.where('tenant_id', '=', tenantId)
  if (member !== undefined) {
    const others = rows.select('member').where('member', '=', OTHERS).limit(1)
    if ((await first(sums, others)) !== undefined) return undefined
    rows = rows.where(isMember(member.dimension, member.value, column))
  }
  const query = rows
    .select([groupOf(kept, groupBy).as('member'), 'currency', ...folded(ofSum)])
    .groupBy(sql`1`)
    .groupBy(sql`2`)
  return rawRows<GroupValues>(sums, query)
}

/** Minutes of all tenants are kept as one sum: there are as many of each tenant. */
const dimensionOf = ({ dimension }: KeptSums, tenantId: number | null): Dimension =>
  dimension === 'minute' && tenantId !== null ? 'tenant_minute' : dimension

function customersOf({ dimension, customer }: KeptSums): RawBuilder<unknown> {
  if (dimension === 'customer' && typeof customer === 'number')
    return sql`customer_id = ${ALL} AND member = ${String(customer)}`
  if (customer === 'each') return sql`customer_id > ${ALL}`
  return sql`customer_id = ${customer === 'all' ? ALL : customer}`
}

function groupOf({ dimension }: KeptSums, groupBy: Grouping): RawBuilder<string> {
  if (groupBy === 'tenant') return idOf('tenant_id')
  if (groupBy === 'customer' && dimension !== 'customer') return idOf('customer_id')
  return sql.ref<string>('member')
}

const idOf = (column: string): RawBuilder<string> =>
  sql`coalesce(CAST(nullif(${sql.ref(column)}, 0) AS TEXT), '')`

/** Records that the sums do not have yet. */
export const newRecords = ({ upTo, gaps }: Watermark): RawBuilder<SqlBool> =>
  sql`(${sql.join(
    [
      sql`cdr.id > ${upTo}`,
      ...gaps.map(({ firstId, lastId }) => sql`cdr.id BETWEEN ${firstId} AND ${lastId}`),
    ],
    sql` OR `,
  )})`

/** The same of records that the sums do not have yet, and of costs that were changed since. */
export async function readTail(
  { store }: Place,
  watermark: Watermark,
  request: SummaryRequest,
  [from, before]: readonly [number, number],
): Promise<readonly (readonly GroupValues[])[]> {
  const { db } = store
  const member = memberOf[request.groupBy].as('member')
  const isNew = newRecords(watermark)
  const conditions = [
    // The plus keeps SQLite from other indexes: the few new records are at the end of the ids.
    sql<boolean>`+cdr.start_stamp >= ${from} AND +cdr.start_stamp < ${before}`,
    ...conditionsOf(request.filters, sql`+cdr.customer_id`),
    ...(request.tenantId === null ? [] : [sql<boolean>`+cdr.tenant_id = ${request.tenantId}`]),
  ]
  let records = db
    .selectFrom('cdr')
    .select([member, sql<string>`coalesce(cdr.currency, '')`.as('currency'), ...folded(ofRecord)])
    .where(isNew)
    .groupBy(sql`1`)
    .groupBy(sql`2`)
  let changes = db
    .selectFrom('cdr_cost_change as change')
    .innerJoin('cdr', 'cdr.id', 'change.cdr_id')
    .select([
      member,
      sql<string>`coalesce(change.currency, '')`.as('currency'),
      ...folded(ofCostChange),
    ])
    .where('change.id', '>', watermark.changesUpTo)
    .where(sql<boolean>`NOT ${isNew}`)
    .groupBy(sql`1`)
    .groupBy(sql`2`)
  for (const condition of conditions) {
    records = records.where(condition)
    changes = changes.where(condition)
  }
  return [await rawRows<GroupValues>(store, records), await rawRows<GroupValues>(store, changes)]
}
