/** Rows of a table that a definition names as text. */
import { type Compilable, type RawBuilder, type Selectable, sql } from 'kysely'
import type { Database } from '../../schema/tables/database.ts'
import type { Store } from '../../schema/storage/store.ts'
import { all, execute, first, insert } from '../../schema/sql/query.ts'
import { grouped } from '../http/rows.ts'
import type { Row } from '../http/field-columns.ts'

type Table = keyof Database

/** A column, alone or behind the name of its table. */
export type ColumnPath = {
  [Name in Table]: (keyof Database[Name] & string) | `${Name}.${keyof Database[Name] & string}`
}[Table]

export const compiled = <R>({ db }: Pick<Store, 'db'>, query: RawBuilder<R>): Compilable<R> => ({
  compile: () => query.compile(db),
})

/** Resolves with the id of the new row. */
export function insertRow(store: Store, table: Table, row: Row): Promise<number> {
  return insert(
    store,
    compiled(
      store,
      sql<{ id: number }>`INSERT INTO ${sql.table(table)} ${assigned(row)} RETURNING id`,
    ),
  )
}

export async function updateRow(store: Store, table: Table, id: number, row: Row): Promise<void> {
  const set = Object.entries(row).map(([column, value]) => sql`${sql.ref(column)} = ${value}`)
  const query = sql`UPDATE ${sql.table(table)} SET ${sql.join(set)} WHERE id = ${id}`
  await execute(store, compiled(store, query))
}

/** Returns the id of a row with these columns. */
export async function rowWith<Name extends Table>(
  store: Store,
  table: Name,
  columns: Partial<Selectable<Database[Name]>>,
): Promise<number | undefined> {
  const where = Object.entries(columns).map(([column, value]: [string, unknown]) =>
    value === null ? sql`${sql.ref(column)} IS NULL` : sql`${sql.ref(column)} = ${value}`,
  )
  const query = sql<{ id: number }>`
    SELECT id FROM ${sql.table(table)} WHERE ${sql.join(where, sql` AND `)} LIMIT 1`
  return (await first<{ id: number }>(store, compiled(store, query)))?.id
}

/** A table of rows below others, such as the nodes of a set. */
export type ChildTable = {
  [Name in Table]: {
    readonly table: Name
    /** The column that names the row above. */
    readonly parent: keyof Database[Name] & string
    /** The columns by which a row is known among those below the same one. */
    readonly keys: readonly (keyof Database[Name] & string)[]
  }
}[Table]

export const keyOf = ({ keys }: Pick<ChildTable, 'keys'>, row: Row): string =>
  keys.map((column) => String(row[column])).join(' ')

/** The rows below these, by the id of the row above, in the order of a column. */
export async function childrenOf(
  store: Store,
  { table, parent }: Pick<ChildTable, 'table' | 'parent'>,
  ids: readonly unknown[],
  order: string,
): Promise<ReadonlyMap<unknown, readonly Row[]>> {
  if (ids.length === 0) return new Map()
  const query = sql<Row>`
    SELECT * FROM ${sql.table(table)} WHERE ${sql.ref(parent)} IN (${sql.join(ids)})
    ORDER BY ${sql.ref(order)}`
  return grouped(await all<Row>(store, compiled(store, query)), (row) => row[parent])
}

/**
 * Replaces the rows below a row. Those with the same key keep their other columns, such as their
 * id.
 */
export async function putChildren(
  store: Store,
  child: ChildTable,
  id: number,
  wanted: readonly Row[],
): Promise<void> {
  const { table, parent } = child
  const keys: readonly string[] = child.keys
  const present = (await childrenOf(store, child, [id], keys[0] ?? '')).get(id) ?? []
  const known = new Set(present.map((row) => keyOf(child, row)))
  const wantedKeys = new Set(wanted.map((row) => keyOf(child, row)))
  const isRow = (row: Row) =>
    sql.join(
      [parent, ...keys].map((column) => sql`${sql.ref(column)} = ${row[column]}`),
      sql` AND `,
    )
  for (const row of present)
    if (!wantedKeys.has(keyOf(child, row)))
      await execute(
        store,
        compiled(store, sql`DELETE FROM ${sql.table(table)} WHERE ${isRow(row)}`),
      )
  for (const columns of wanted) {
    const row: Row = { ...columns, [parent]: id }
    const rest = Object.entries(columns).filter(([column]) => !keys.includes(column))
    if (!known.has(keyOf(child, row)))
      await execute(store, compiled(store, sql`INSERT INTO ${sql.table(table)} ${assigned(row)}`))
    else if (rest.length > 0) {
      const set = rest.map(([column, value]) => sql`${sql.ref(column)} = ${value}`)
      await execute(
        store,
        compiled(store, sql`UPDATE ${sql.table(table)} SET ${sql.join(set)} WHERE ${isRow(row)}`),
      )
    }
  }
}

/** `(a, b) VALUES (1, 2)` */
function assigned(row: Row): RawBuilder<unknown> {
  const columns = Object.keys(row).map((column) => sql.ref(column))
  return sql`(${sql.join(columns)}) VALUES (${sql.join(Object.values(row))})`
}
