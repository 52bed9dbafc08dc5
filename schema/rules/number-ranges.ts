/** Numbers and blocks of numbers as the table `phone_number` has them. Pure. */
import { readNumber, withoutPlus } from './numbers.ts'

export interface NumberRange {
  /** Without a plus; of a single number, both are the same. */
  readonly first: string
  readonly last: string
  /** Their length; 0: no plain number, such as a user name. */
  readonly digits: number
}

/** The longest number of E.164, which is also exact as a number of JavaScript. */
export const MAX_BLOCK_DIGITS = 15

/** The form by which numbers are found: the normal form without its plus, or the text itself. */
export const numberKey = (number: string): string => withoutPlus(readNumber(number).text)

/** Returns the range of a single number, or of a user name. */
export function rangeOf(number: string): NumberRange {
  const first = numberKey(number)
  return { first, last: first, digits: /^[0-9]+$/.test(first) ? first.length : 0 }
}

/** The range in the columns of the table. */
export const rangeColumns = ({ first, last, digits }: NumberRange) => ({
  first_number: first,
  last_number: last,
  digits,
})
