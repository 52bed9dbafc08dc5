/** Which calls are meant, besides their period and tenant. */
import { type RawBuilder, sql, type SqlBool } from 'kysely'
import type { Direction, Disposition } from '../../../schema/contracts/field-values.ts'
import { onNode, spellings } from '../cdr-match.ts'
import { type MemberDimension, memberOf } from './dimensions.ts'

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
