/** By what calls are grouped, which of these groups have kept sums, and which calls are meant. */
import { type RawBuilder, sql, type SqlBool } from 'kysely'
import { DAY_MS } from '../../../schema/clock.ts'
import type { Direction, Disposition } from '../../../schema/contracts/field-values.ts'
import { onNode, spellings } from '../cdr-match.ts'

export const groupings = [
  'customer',
  'tenant',
  'caller',
  'callee_prefix',
  'node',
  'carrier',
  'denial_code',
  'minute',
] as const
export type Grouping = (typeof groupings)[number]

/** Groups that a filter may name, and that calls of a customer are summed by, too. */
export type MemberDimension = 'caller' | 'callee_prefix' | 'node' | 'carrier' | 'denial_code'
/** `rate_prefix`: the prefix that a call is charged by, of each customer. Anomalies are found by it. */
export type Dimension = MemberDimension | 'customer' | 'minute' | 'tenant_minute' | 'rate_prefix'

/** Digits of a called number that its group has, without a leading `+`. */
export const PREFIX_LENGTH = 4
const MINUTE_MS = 60_000

/** In `customer_id` and `tenant_id` of sums. */
export const ALL = -1
export const NONE = 0

/** The member of groups that are not kept apart, because there are too many of them on that day. */
export const OTHERS = '\u0001'

/** Sums by customer and one of these are kept as well. */
export const paired: ReadonlySet<string> = new Set<MemberDimension>([
  'callee_prefix',
  'node',
  'carrier',
  'denial_code',
])

/** The group of a record. */
export const memberOf: Readonly<Record<Grouping, RawBuilder<string>>> = {
  customer: sql`coalesce(CAST(cdr.customer_id AS TEXT), '')`,
  tenant: sql`coalesce(CAST(cdr.tenant_id AS TEXT), '')`,
  caller: sql`cdr.caller_id_number`,
  callee_prefix: sql`substr(ltrim(cdr.destination_number, '+'), 1, ${sql.lit(PREFIX_LENGTH)})`,
  node: sql`coalesce(cdr.node, '')`,
  carrier: sql`coalesce(cdr.carrier, '')`,
  denial_code: sql`coalesce(cdr.denial_code, '')`,
  minute: sql`CAST(cdr.start_stamp - cdr.start_stamp % ${sql.lit(MINUTE_MS)} AS TEXT)`,
}

export const startOfDay = (ms: number): number => Math.floor(ms / DAY_MS) * DAY_MS
export const endOfDay = (ms: number): number => Math.ceil(ms / DAY_MS) * DAY_MS

/** Calls match all that are given. */
export interface CallFilters {
  readonly customerId?: number | undefined
  readonly members?: Readonly<Partial<Record<MemberDimension, string>>> | undefined
  readonly direction?: Direction | undefined
  readonly disposition?: Disposition | undefined
  readonly minCostMicros?: number | undefined
}

type Condition = RawBuilder<SqlBool>

/** Of records of `cdr`. */
export function conditionsOf(
  filters: CallFilters,
  customerColumn: RawBuilder<number> = sql`cdr.customer_id`,
): readonly Condition[] {
  const { customerId, members, direction, disposition, minCostMicros } = filters
  return [
    ...given(customerId, (id) => sql`${customerColumn} = ${id}`),
    ...given(direction, (value) => sql`cdr.direction = ${value}`),
    ...given(disposition, (value) => sql`cdr.disposition = ${value}`),
    ...given(minCostMicros, (value) => sql`cdr.cost_micros >= ${value}`),
    ...memberFilters(members).map(([dimension, value]) =>
      isMember(dimension, value, columnOf[dimension]),
    ),
  ]
}

const given = <T>(
  value: T | undefined,
  condition: (value: T) => Condition,
): readonly Condition[] => (value === undefined ? [] : [condition(value)])

export const memberFilters = (members: CallFilters['members']) =>
  Object.entries(members ?? {}) as readonly (readonly [MemberDimension, string])[]

/** Whole columns, so that an index may help. */
const columnOf: Readonly<Record<MemberDimension, RawBuilder<string>>> = {
  ...memberOf,
  callee_prefix: sql`ltrim(cdr.destination_number, '+')`,
  node: sql`cdr.node`,
  carrier: sql`cdr.carrier`,
  denial_code: sql`cdr.denial_code`,
}

/** Whether what `column` has is what a filter names. */
export function isMember(
  dimension: MemberDimension,
  value: string,
  column: RawBuilder<string>,
): Condition {
  if (dimension === 'caller') return sql`${column} IN (${sql.join(spellings(value))})`
  if (dimension === 'callee_prefix') return sql`${column} LIKE ${`${value}%`}`
  if (dimension === 'node') return onNode(column, value)
  return sql`${column} = ${value}`
}
