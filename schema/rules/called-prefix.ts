/**
 * Prefixes of called numbers that a spend guard brakes. A price may differ between two spellings of a number; what a
 * guard covers does not: `+1900`, `001900`, `01900`, `1 (900)` and `*31#1900` all begin with `1900`. A prefix with one
 * leading zero, such as `0900`, is a national one, and covers numbers that are dialled with a zero.
 */
import { withoutSeparators } from './phone-number.ts'

/** Longer prefixes name one number. */
const MAX_PREFIX_LENGTH = 20

/** The stored form of a prefix; empty: all numbers. Undefined: it is no prefix, or only zeros, which say nothing. */
export function normalPrefix(text: string): string | undefined {
  const plain = withoutSeparators(text)
  if (plain === '') return ''
  if (!/^\+?[0-9*#]+$/.test(plain)) return undefined
  const digits = withoutPlus(plain)
  const significant = digits.replace(/^0+/, '')
  if (significant === '' || significant.length > MAX_PREFIX_LENGTH) return undefined
  return /^0[^0]/.test(plain) ? `0${significant}` : significant
}

/** Whether `number`, in the normal form of calls, begins with `prefix`, in its stored form. */
export const coversNumber = (prefix: string, number: string): boolean =>
  prefix === '' || spellingsOf(number).some((digits) => digits.startsWith(prefix))

/** What a number may be, in the form of prefixes: one text for nearly every number, a few where it begins oddly. */
export function spellingsOf(number: string): readonly string[] {
  const digits = withoutPlus(number)
  if (!/^[0*#]/.test(digits)) return [digits]
  const spellings = new Set<string>()
  addSpellings(digits, spellings, MAX_CODES)
  return [...spellings]
}

/** Service codes in front of each other. */
const MAX_CODES = 3

/** `*31#` and its like are closed by a sign, `*67` is not. */
const serviceCodes = [/^[*#]+[0-9]{0,4}[*#]+/, /^[*#]+[0-9]{2}/] as const

function addSpellings(digits: string, into: Set<string>, codesLeft: number): void {
  into.add(digits)
  if (digits.startsWith('0')) {
    const significant = digits.replace(/^0+/, '')
    into.add(significant)
    // Behind a digit for an outside line, a national number.
    into.add(`0${significant}`)
    return
  }
  if (codesLeft === 0 || !/^[*#]/.test(digits)) return
  for (const code of serviceCodes) {
    const rest = digits.replace(code, '')
    if (rest !== digits) addSpellings(rest, into, codesLeft - 1)
  }
}

const withoutPlus = (number: string): string => (number.startsWith('+') ? number.slice(1) : number)
