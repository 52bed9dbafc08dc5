/** Converts money, times and booleans between their stored and their API forms. */
import { type RawBuilder, sql, type ColumnType, type Generated } from 'kysely'
import type { DtmfMode, MediaPolicy, MediaProfile } from './contracts/field-values.ts'

/**
 * Money is stored in millionths of the currency unit, as 64-bit integers. A single amount (a price,
 * a cost, a top-up, a limit) is a safe integer in memory, up to nine billion units; sums (balances,
 * reservations, totals) are bigints.
 */
const microsPerUnit = 1_000_000

/** The largest single amount: nine billion units. */
export const MAX_AMOUNT_UNITS = 9_000_000_000

/**
 * The largest balance, positive or negative: nine trillion units. Beyond it, 64 bits would
 * overflow.
 */
export const MAX_SUM_MICROS = 9_000_000_000_000_000_000n

/** Returns the JSON number nearest to an amount: exact to six decimals up to nine billion units. */
export const moneyToNumber = (micros: number | bigint): number =>
  typeof micros === 'number' ? micros / microsPerUnit : Number(moneyToDecimal(micros))

/** `641700` → `"0.6417"`, `600000` → `"0.60"`: exact, with two to six decimals. */
export function moneyToDecimal(micros: number | bigint): string {
  const isNegative = micros < 0
  const digits = String(micros)
    .slice(isNegative ? 1 : 0)
    .padStart(7, '0')
  const fraction = digits.slice(-6)
  const shown = fraction.slice(0, 2) + fraction.slice(2).replace(/0+$/, '')
  return `${isNegative ? '-' : ''}${digits.slice(0, -6)}.${shown}`
}

/** The exact inverse of `moneyToDecimal`, of sums too. */
export function decimalToMicros(decimal: string): bigint {
  const [units = '', fraction = ''] = decimal.split('.')
  return BigInt(`${units}${fraction.padEnd(6, '0')}`)
}

/** A sum as text, for `BigInt`: a number would be rounded beyond nine billion units. */
export const exactSum = (column: string): RawBuilder<string> =>
  sql<string>`CAST(${sql.ref(column)} AS TEXT)`

/**
 * Returns the micro-units of a decimal text or JSON number. Undefined when it is not an amount, has
 * more than six decimals, or is too large to be exact.
 */
export function parseMoney(amount: string | number): number | undefined {
  if (typeof amount === 'number') return parseMoneyNumber(amount)
  const match = /^(-?)(\d{1,10})(?:\.(\d{1,6}))?$/.exec(amount)
  if (match === null) return undefined
  const [, sign = '', units = '', fraction = ''] = match
  const micros = Number(units) * microsPerUnit + Number(fraction.padEnd(6, '0'))
  if (!Number.isSafeInteger(micros)) return undefined
  return sign === '-' && micros !== 0 ? -micros : micros
}

function parseMoneyNumber(amount: number): number | undefined {
  const micros = Math.round(amount * microsPerUnit)
  if (!Number.isSafeInteger(micros)) return undefined
  // The double nearest to a six-decimal amount survives the conversion to micro-units and back;
  // other doubles have more decimals.
  return micros / microsPerUnit === amount ? micros + 0 : undefined
}

/** RFC 3339 in UTC with milliseconds. */
export const timeToText = (ms: number): string => new Date(ms).toISOString()

const dateTime = /^(\d{4})-(\d{2})-(\d{2})[Tt ]\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:[Zz]|[+-]\d{2}:\d{2})$/

/** Returns milliseconds UTC of an RFC 3339 date-time; undefined for anything else. */
export function parseTime(text: string): number | undefined {
  const match = dateTime.exec(text)
  if (match === null) return undefined
  // `Date` would accept 31 February as 3 March.
  const [year = 0, month = 0, day = 0] = match.slice(1, 4).map(Number)
  if (new Date(Date.UTC(year, month - 1, day)).getUTCDate() !== day) return undefined
  const ms = Date.parse(text.replace(' ', 'T'))
  return Number.isNaN(ms) ? undefined : ms
}

export const toFlag = (isTrue: boolean): Flag => (isTrue ? 1 : 0)
export const fromFlag = (flag: Flag): boolean => flag === 1

// ---- the column types of all tables ------------------------------------------------------

/** 0 or 1: SQLite has no booleans. */
export type Flag = 0 | 1

/** Set by the database when the row is inserted, never changed afterwards. */
export type Id = Generated<number>

/** Optional when a row is inserted. */
export type Defaulted<T> = ColumnType<T, T | undefined, T>

/** Media rules of a party. */
export interface MediaRulesColumns {
  /** Null: inherited. */
  media: MediaPolicy | null
  media_profile: Defaulted<MediaProfile>
  /** JSON array of codec names, or null: all. */
  codecs: string | null
  dtmf: Defaulted<DtmfMode>
}

/**
 * A sum of money. A plain SELECT returns a number that is rounded when large: read it with
 * `exactSum`, and write it as a bigint.
 */
export type Sum = ColumnType<{ readonly isReadBy: 'exactSum' }, bigint | undefined, bigint>
