/** Helpers for lists: search conditions, and children of their parents. */
import { type AliasableExpression, type Expression, type ExpressionBuilder, type SqlBool, type StringReference, sql } from 'kysely'
import type { Database } from '../../schema/database.ts'
import type { Store } from '../../schema/open.ts'
import { first } from '../../schema/sql/query.ts'
import { likePattern } from './page.ts'

/** Matches rows with `part` in any of the columns, without regard to ASCII case; all rows without a search. */
export function contains<T extends keyof Database>(
  row: ExpressionBuilder<Database, T>,
  columns: readonly StringReference<Database, T>[],
  part: string | undefined,
): Expression<SqlBool> {
  if (part === undefined) return sql<SqlBool>`true`
  const pattern = likePattern(part)
  return row.or(
    columns.map(
      (column) => sql<SqlBool>`lower(${row.ref(column)}) like lower(${pattern}) escape '\\'`,
    ),
  )
}

/** Compares with null as well: `where('tenant_id', same(tenantId), tenantId)`. */
export const same = (value: number | null): 'is' | '=' => (value === null ? 'is' : '=')

/** Counts the rows of a query that ends at `MAX_COUNTED`. */
export async function countOf(
  store: Store,
  rows: AliasableExpression<{ readonly id: number }>,
): Promise<number> {
  const some = store.db.selectFrom(rows.as('some'))
  const query = some.select((row) => row.fn.countAll<number>().as('n'))
  return (await first(store, query))?.n ?? 0
}

/** Groups rows by the id of their parent, keeping their order. */
export function grouped<Row, Parent>(
  rows: readonly Row[],
  parentOf: (row: Row) => Parent,
): ReadonlyMap<Parent, readonly Row[]> {
  const groups = new Map<Parent, Row[]>()
  for (const row of rows) {
    const parent = parentOf(row)
    const group = groups.get(parent)
    if (group === undefined) groups.set(parent, [row])
    else group.push(row)
  }
  return groups
}
