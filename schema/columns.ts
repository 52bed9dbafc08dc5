/** How money, time and truth are stored, and how they leave: translated here and nowhere else. */
import type { Flag } from './database.ts'

/** Money is stored in millionths of the currency's unit. */
const microsPerUnit = 1_000_000

/** The JSON number of an amount. Exact to the last of six decimals up to about nine billion units. */
export const moneyToNumber = (micros: number): number => micros / microsPerUnit

/** `641700` → `"0.6417"`, `600000` → `"0.60"`: exact, with two to six decimals. */
export function moneyToDecimal(micros: number): string {
  const size = Math.abs(micros)
  const units = Math.floor(size / microsPerUnit)
  const fraction = String(size % microsPerUnit).padStart(6, '0')
  const shown = fraction.slice(0, 2) + fraction.slice(2).replace(/0+$/, '')
  return `${micros < 0 ? '-' : ''}${units}.${shown}`
}

/**
 * Micro-units of a decimal text or JSON number; undefined for what is not an amount, has more than six
 * decimals, or is too large to be exact.
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
  // The double nearest to a six-decimal amount is reached again from its micro-units; others are finer.
  return micros / microsPerUnit === amount ? micros + 0 : undefined
}

/** RFC 3339 in UTC with milliseconds. */
export const timeToText = (ms: number): string => new Date(ms).toISOString()

const dateTime = /^(\d{4})-(\d{2})-(\d{2})[Tt ]\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:[Zz]|[+-]\d{2}:\d{2})$/

/** Milliseconds UTC of an RFC 3339 date-time; undefined for anything else. */
export function parseTime(text: string): number | undefined {
  const match = dateTime.exec(text)
  if (match === null) return undefined
  // `Date` would read 31 February as 3 March.
  const [year = 0, month = 0, day = 0] = match.slice(1, 4).map(Number)
  if (new Date(Date.UTC(year, month - 1, day)).getUTCDate() !== day) return undefined
  const ms = Date.parse(text.replace(' ', 'T'))
  return Number.isNaN(ms) ? undefined : ms
}

export const toFlag = (isTrue: boolean): Flag => (isTrue ? 1 : 0)
export const fromFlag = (flag: Flag): boolean => flag === 1
