/**
 * Telephone numbers as numbers: in the order of their digits, so that a beginning is a range. A
 * leading `+` does not count.
 */
import { withoutPlus } from '../../../schema/rules/numbers.ts'

/** More digits in base 11 would not be exact in a double. */
const MOST_DIGITS = 15
const BASE = 11

export interface CodeRange {
  readonly from: number
  readonly to: number
}

const isCoded = /^\d{1,15}$/

/** Undefined: it has other characters, or too many digits. */
export function codeOfNumber(number: string): number | undefined {
  const digits = withoutPlus(number)
  return isCoded.test(digits) ? padded(digits) : undefined
}

/** The codes of all numbers that begin so; undefined: none has a code. */
export function codesOfStart(start: string): CodeRange | undefined {
  const digits = withoutPlus(start)
  if (!isCoded.test(digits)) return undefined
  const from = padded(digits)
  return { from, to: from + BASE ** (MOST_DIGITS - digits.length) - 1 }
}

function padded(digits: string): number {
  let code = 0
  for (let place = 0; place < MOST_DIGITS; place += 1)
    code = code * BASE + (place < digits.length ? digits.charCodeAt(place) - 47 : 0)
  return code
}
