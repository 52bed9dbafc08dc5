/** The column types of all tables. */
import type { ColumnType, Generated } from 'kysely'
import type { DtmfMode, MediaPolicy, MediaProfile } from '../contracts/field-values.ts'

/** 0 or 1: SQLite has no booleans. */
export type Flag = 0 | 1

/** Set by the database when the row is inserted, never changed afterwards. */
export type Id = Generated<number>

/** Optional when a row is inserted. */
export type Defaulted<T> = ColumnType<T, T | undefined, T>

/** What a party says about its media. */
export interface MediaRulesColumns {
  /** Null: inherited. */
  media: MediaPolicy | null
  media_profile: Defaulted<MediaProfile>
  /** JSON array of codec names, or null: all. */
  codecs: string | null
  dtmf: Defaulted<DtmfMode>
}

/**
 * A sum of money. A plain SELECT returns a number that is rounded when large: read it with `exactSum`, and
 * write it as a bigint.
 */
export type Sum = ColumnType<{ readonly isReadBy: 'exactSum' }, bigint | undefined, bigint>
