/**
 * The normal form of a telephone number: `+` or nothing, then `0-9`, `*` and `#`, 64 characters at most. Price, block,
 * route, limits and records read this form only, so that no spelling of a number is another number.
 */

export interface ReadNumber {
  /**
   * `number`: `text` is in the normal form. `name`: it holds a letter, as a user name does. `malformed`: neither,
   * such as `++1`, `1+2`, full-width digits, or nothing but separators.
   */
  readonly kind: 'number' | 'name' | 'malformed'
  /** The normal form; or else the text as it was read, without control characters, cut at 64 characters. */
  readonly text: string
}

const MAX_NUMBER_LENGTH = 64
/** With separators and escapes. A longer text is malformed without being read. */
const MAX_SPELLING_LENGTH = 128

/** Reads a number as a person writes it: visual separators (RFC 3966 §5.1.1) and spaces do not count. */
export function readNumber(text: string): ReadNumber {
  if (isNumber(text)) return { kind: 'number', text }
  if (text.length > MAX_SPELLING_LENGTH) return { kind: 'malformed', text: printable(text) }
  const plain = withoutSeparators(text)
  if (isNumber(plain)) return { kind: 'number', text: plain }
  return { kind: hasLetter.test(text) ? 'name' : 'malformed', text: printable(text) }
}

/**
 * Reads the user part of a SIP URI or the number of a tel URI. Parameters behind the first `;`
 * (RFC 3966 §3: `phone-context`, `ext`, `isub`, `npdi` …) belong to no number; escapes are resolved once.
 */
export function readUserPart(user: string): ReadNumber {
  if (isNumber(user)) return { kind: 'number', text: user }
  const semicolon = user.indexOf(';')
  const escaped = semicolon === -1 ? user : user.slice(0, semicolon)
  if (escaped.length > MAX_SPELLING_LENGTH || !escaped.includes('%')) return readNumber(escaped)
  try {
    return readNumber(decodeURIComponent(escaped))
  } catch {
    // Half an escape, or no UTF-8.
    return { kind: 'malformed', text: printable(escaped) }
  }
}

/** What stands in the place of a number in a record or a price: the normal form, or the text itself. */
export const numberOrText = (text: string): string => readNumber(text).text

export const withoutSeparators = (text: string): string => text.replace(separators, '')

const normalForm = /^\+?[0-9*#]+$/
const isNumber = (text: string): boolean =>
  text.length <= MAX_NUMBER_LENGTH && normalForm.test(text)
const separators = /[-.() ]+/g
const hasLetter = /\p{L}/u

/** Control characters (a folded line, an escaped CR) must reach neither a header nor a log. */
const printable = (text: string): string =>
  text
    .slice(0, MAX_SPELLING_LENGTH)
    .replace(/\p{Cc}+/gu, ' ')
    .slice(0, MAX_NUMBER_LENGTH)
