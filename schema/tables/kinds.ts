/** The kinds of columns that every table is made of. */
import type { ColumnType, Generated } from 'kysely'

/** 0 or 1: SQLite has no booleans. */
export type Flag = 0 | 1

/** Set by the database when the row is inserted, never changed afterwards. */
export type Id = Generated<number>

/** May be left out when a row is inserted. */
export type Defaulted<T> = ColumnType<T, T | undefined, T>

/**
 * A sum of money. The number that a plain SELECT gives is rounded when it is large: it is read by `exactSum`,
 * and written as a bigint.
 */
export type Sum = ColumnType<{ readonly isReadBy: 'exactSum' }, bigint | undefined, bigint>
