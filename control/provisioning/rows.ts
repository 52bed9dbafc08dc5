/** Reading lists: what a search matches, and children beside their parents. */
import type { Expression, ExpressionBuilder, SqlBool, StringReference } from 'kysely'
import { sql } from 'kysely'
import type { Database } from '../../schema/database.ts'
import { likePattern } from '../http/page.ts'

/** True for rows with `part` in any of the columns, in any case (ASCII); for all rows where nothing is searched. */
export function contains<T extends keyof Database>(
  row: ExpressionBuilder<Database, T>,
  columns: readonly StringReference<Database, T>[],
  part: string | undefined,
): Expression<SqlBool> {
  if (part === undefined) return sql<SqlBool>`true`
  const pattern = likePattern(part)
  return row.or(
    columns.map((column) => sql<SqlBool>`${row.ref(column)} like ${pattern} escape '\\'`),
  )
}

/** Rows by the id of their parent, in the order given. */
export function grouped<Row>(
  rows: readonly Row[],
  parentOf: (row: Row) => number,
): ReadonlyMap<number, readonly Row[]> {
  const groups = new Map<number, Row[]>()
  for (const row of rows) {
    const parent = parentOf(row)
    const group = groups.get(parent)
    if (group === undefined) groups.set(parent, [row])
    else group.push(row)
  }
  return groups
}
