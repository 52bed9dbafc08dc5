/** How a field of a resource stands in the columns of its table, where they differ. */
import { readNames } from '../../schema/rules/media.ts'
import type { Database } from '../../schema/tables/database.ts'
import { fromFlag, moneyToDecimal, moneyToNumber, timeToText } from '../../schema/columns.ts'

/** A row, or a part of one, as the database has it. */
export type Row = Readonly<Record<string, unknown>>

/** A column of any table. */
export type ColumnName = {
  [Table in keyof Database]: keyof Database[Table] & string
}[keyof Database]

export interface Column {
  /** The field of the view. */
  readonly read: (row: Row) => unknown
  /** The columns of a value of the body. Absent: the field is only shown. */
  readonly write?: (value: unknown) => Row
  /** The field of the body that would write the row; absent: as `read`. */
  readonly document?: (row: Row) => unknown
  /** An amount of money, which a body has in millionths. */
  readonly isAmount?: true
}

/** A boolean. */
export const flag = (column: string): Column => ({
  read: (row) => fromFlag(row[column] === 1 ? 1 : 0),
  write: (value) => ({ [column]: value === true ? 1 : 0 }),
})

/** JSON in a text column, which is null where the value is. */
export const json = (column: string): Column => ({
  read: (row) => parsed(row[column]),
  write: (value) => ({ [column]: value == null ? null : JSON.stringify(value) }),
})

/** A list as JSON; an empty one is null in its column. */
export const list = (column: string): Column => ({
  read: (row) => (row[column] == null ? [] : parsed(row[column])),
  write: (value) => ({
    [column]: Array.isArray(value) && value.length > 0 ? JSON.stringify(value) : null,
  }),
})

/**
 * A list of names. It is null in its column while it is empty, or while it is null: `empty` is what
 * is shown then.
 */
export const names = (column: string, empty: readonly string[] | null): Column => ({
  read: (row) => {
    const text = row[column]
    return typeof text === 'string' ? [...(readNames(text) ?? [])] : empty
  },
  write: (value) => ({
    [column]: Array.isArray(value) && value.length > 0 ? JSON.stringify(value) : null,
  }),
})

/** An amount: a JSON number in the view, millionths in the body and in its column. */
export const money = (column: string): Column => ({
  read: (row) => moneyToNumber(amountIn(row[column])),
  write: (value) => ({ [column]: value }),
  document: (row) => row[column],
  isAmount: true,
})

/** The same amount as exact decimal text; only shown. */
export const exactMoney = (column: string): Column => ({
  read: (row) => moneyToDecimal(amountIn(row[column])),
})

/** Milliseconds UTC in the body and in the column, RFC 3339 in the view. */
export const time = (column: string): Column => ({
  read: (row) => timeText(row[column]),
  write: (value) => ({ [column]: value ?? null }),
  document: (row) => row[column],
})

/** A column of another name than the field. */
export const column = (name: string): Column => ({
  read: (row) => row[name],
  write: (value) => ({ [name]: value ?? null }),
})

/** An object whose members are columns. */
export const nested = (columns: Readonly<Record<string, string>>): Column => ({
  read: (row) =>
    Object.fromEntries(Object.entries(columns).map(([member, name]) => [member, row[name]])),
  write: (value) =>
    Object.fromEntries(
      Object.entries(columns).map(([member, name]) => [name, memberOf(value, member) ?? null]),
    ),
})

const timeText = (ms: unknown): string | null => (typeof ms === 'number' ? timeToText(ms) : null)

const amountIn = (value: unknown): number | bigint =>
  typeof value === 'number' || typeof value === 'bigint' ? value : 0

const parsed = (text: unknown): unknown =>
  typeof text === 'string' ? (JSON.parse(text) as unknown) : null

function memberOf(value: unknown, member: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Row)[member] : undefined
}
