/**
 * The normal form of a telephone number: an optional `+`, then `0-9`, `*` and `#`, 64 characters at most.
 * Price, block, route, limits and records use only this form, so that different notations of a number are
 * the same number.
 */

export interface ReadNumber {
  /**
   * `number`: `text` is in normal form. `name`: it contains a letter, like a user name. `malformed`:
   * neither, such as `++1`, `1+2`, full-width digits, or only separators.
   */
  readonly kind: 'number' | 'name' | 'malformed'
  /** The normal form; or else the original text without control characters, cut at 64 characters. */
  readonly text: string
}

const MAX_NUMBER_LENGTH = 64
/** With separators and escapes. A longer text is malformed without being parsed. */
const MAX_SPELLING_LENGTH = 128

/** Parses a number in human notation: visual separators (RFC 3966 §5.1.1) and spaces are ignored. */
export function readNumber(text: string): ReadNumber {
  if (isNumber(text)) return { kind: 'number', text }
  if (text.length > MAX_SPELLING_LENGTH) return { kind: 'malformed', text: printable(text) }
  const plain = withoutSeparators(text)
  if (isNumber(plain)) return { kind: 'number', text: plain }
  return { kind: hasLetter.test(text) ? 'name' : 'malformed', text: printable(text) }
}

/**
 * Parses the user part of a SIP URI or the number of a tel URI. Parameters after the first `;` (RFC 3966
 * §3: `phone-context`, `ext`, `isub`, `npdi` …) are not part of the number; escapes are decoded once.
 */
export function readUserPart(user: string): ReadNumber {
  if (isNumber(user)) return { kind: 'number', text: user }
  const semicolon = user.indexOf(';')
  const escaped = semicolon === -1 ? user : user.slice(0, semicolon)
  if (escaped.length > MAX_SPELLING_LENGTH || !escaped.includes('%')) return readNumber(escaped)
  try {
    return readNumber(decodeURIComponent(escaped))
  } catch {
    // A truncated escape, or invalid UTF-8.
    return { kind: 'malformed', text: printable(escaped) }
  }
}

/** Whether a called party is known by a user name: such a call reaches no carrier's gateway. */
export const isName = (text: string): boolean => !isNumber(text) && readNumber(text).kind === 'name'

/** Returns the value for a record or a price: the normal form, or the text itself. */
export const numberOrText = (text: string): string => readNumber(text).text

/** A leading `+` never decides a match. */
export const withoutPlus = (number: string): string =>
  number.startsWith('+') ? number.slice(1) : number

export const withoutSeparators = (text: string): string => text.replace(separators, '')

const normalForm = /^\+?[0-9*#]+$/
const isNumber = (text: string): boolean =>
  text.length <= MAX_NUMBER_LENGTH && normalForm.test(text)
const separators = /[-.() ]+/g
const hasLetter = /\p{L}/u

/** Control characters (a folded line, an escaped CR) must not get into a header or a log. */
const printable = (text: string): string =>
  text
    .slice(0, MAX_SPELLING_LENGTH)
    .replace(/\p{Cc}+/gu, ' ')
    .slice(0, MAX_NUMBER_LENGTH)
