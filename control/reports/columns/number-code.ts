/**
 * Telephone numbers as numbers: in the order of their digits, so that a beginning is a range. A
 * leading `+` is the last bit.
 */
import { withoutPlus } from '../../../schema/rules/numbers.ts'

/** More digits in base 11, and a bit, would not be exact in a double. */
const MOST_DIGITS = 15
const BASE = 11
/** The code of a digit `0` at the last place; zero stands where there is none. */
const ZERO = 47

export interface CodeRange {
  readonly from: number
  readonly to: number
}

const isCoded = /^\d{1,15}$/

/** Undefined: it has other characters, or too many digits. */
export function codeOfNumber(number: string): number | undefined {
  const digits = withoutPlus(number)
  if (!isCoded.test(digits)) return undefined
  return 2 * padded(digits) + (digits.length < number.length ? 1 : 0)
}

/** The codes of a number with and without `+`. */
export function codesOfNumber(number: string): CodeRange | undefined {
  const digits = withoutPlus(number)
  if (!isCoded.test(digits)) return undefined
  const from = 2 * padded(digits)
  return { from, to: from + 1 }
}

export function numberOfCode(code: number): string {
  const plus = code % 2 === 1 ? '+' : ''
  return plus + digitsOf(Math.floor(code / 2), MOST_DIGITS)
}

/** The same for all numbers whose first digits, as many as there are, are the same. */
export const startOfCode = (code: number, length: number): number =>
  Math.floor(Math.floor(code / 2) / BASE ** (MOST_DIGITS - length))

/** The first digits, of a number that `startOfCode` has given. */
export const digitsOfStart = digitsOf

function digitsOf(padded: number, places: number): string {
  let digits = ''
  let rest = padded
  for (let place = 0; place < places; place += 1) {
    const digit = rest % BASE
    if (digit > 0) digits = String.fromCharCode(ZERO + digit) + digits
    rest = Math.floor(rest / BASE)
  }
  return digits
}

/** The codes of all numbers that begin so; undefined: none has a code. */
export function codesOfStart(start: string): CodeRange | undefined {
  const digits = withoutPlus(start)
  if (!isCoded.test(digits)) return undefined
  const from = 2 * padded(digits)
  return { from, to: from + 2 * BASE ** (MOST_DIGITS - digits.length) - 1 }
}

function padded(digits: string): number {
  let code = 0
  for (let place = 0; place < MOST_DIGITS; place += 1)
    code = code * BASE + (place < digits.length ? digits.charCodeAt(place) - ZERO : 0)
  return code
}
