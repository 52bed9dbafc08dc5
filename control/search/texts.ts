/** Reads the text of a search: a number, or the beginning of one or of a uuid. */
import { numberOrText, withoutPlus } from '../../schema/rules/numbers.ts'

/** Shorter numbers begin too many others. */
const MIN_DIGITS = 3

/**
 * The spellings of a telephone number, or of its beginning, as they are stored: the digits first.
 * Empty: the text is none.
 */
export function spellingsOf(text: string): readonly string[] {
  const number = numberOrText(text)
  if (!/^\+?[0-9*#]+$/.test(number)) return []
  const digits = withoutPlus(number)
  if (digits.length < MIN_DIGITS) return []
  const international = /^00[1-9]/.test(digits) ? digits.slice(2) : undefined
  return [
    digits,
    `+${digits}`,
    ...(international === undefined ? [] : [international, `+${international}`]),
  ]
}

/** The first hexadecimal digits of a uuid, in small letters; undefined: the text is none. */
export function uuidStart(text: string): string | undefined {
  const small = text.toLowerCase()
  return /^[\da-f]{8}(?:$|-[\da-f-]{0,27}$)/.test(small) ? small : undefined
}

/** Texts that begin with `start` come before it, in the order of bytes. */
export const endOf = (start: string): string => `${start}\u{10ffff}`
