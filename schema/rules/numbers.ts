import type { ExitCodes } from '../contracts/charging.ts'

/** Telephone numbers: their normal form, rules that rewrite them, prefixes and exit codes. Pure. */

/**
 * The normal form of a telephone number: an optional `+`, then `0-9`, `*` and `#`, 64 characters at
 * most. Price, block, route, limits and records use only this form, so that different notations of
 * a number are the same number.
 */
export interface ReadNumber {
  /**
   * `number`: `text` is in normal form. `name`: it contains a letter, like a user name.
   * `malformed`: neither, such as `++1`, `1+2`, full-width digits, or only separators.
   */
  readonly kind: 'number' | 'name' | 'malformed'
  /**
   * The normal form; or else the original text without control characters, cut at 64 characters.
   */
  readonly text: string
}

const MAX_NUMBER_LENGTH = 64
/** A longer text, with separators and escapes, is malformed without being parsed. */
const MAX_SPELLING_LENGTH = 128

/**
 * Parses a number in human notation: visual separators (RFC 3966 §5.1.1) and spaces are ignored.
 */
export function readNumber(text: string): ReadNumber {
  if (isNumber(text)) return { kind: 'number', text }
  if (text.length > MAX_SPELLING_LENGTH) return { kind: 'malformed', text: printable(text) }
  const plain = withoutSeparators(text)
  if (isNumber(plain)) return { kind: 'number', text: plain }
  return { kind: hasLetter.test(text) ? 'name' : 'malformed', text: printable(text) }
}

/**
 * Parses the user part of a SIP URI or the number of a tel URI. Parameters after the first `;` (RFC
 * 3966 §3: `phone-context`, `ext`, `isub`, `npdi` …) are not part of the number; escapes are
 * decoded once.
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

/**
 * Rules that rewrite a telephone number, as carriers store them: the first matching rule replaces
 * its match with `replace`. `match` is a small subset of JavaScript's regular expressions, chosen
 * so that no rule takes longer than a millisecond on any number.
 */
export interface NumberRule {
  readonly match: string
  /** `$1` to `$9` refer to the groups of `match`. */
  readonly replace: string
}

export const maxNumberRules = 32
export const maxRuleLength = 100

/** Maximum characters of a number that a rule matches; longer numbers stay unchanged. */
const maxNumberLength = 64

/**
 * Maximum number of paths by which a matcher may try a rule on the longest number. Each takes some
 * nanoseconds; tests check that the slowest rules stay below a millisecond.
 */
const maxWays = 50_000

/** The start or end of a group, an alternative, or one character with its quantifier. */
const token =
  /(?<open>\((?:\?:)?)|(?<close>\))|(?<alternative>\|)|(?:\\[d+*#.^$?]|\[\^?(?:\\d|[0-9A-Za-z*#+_.-])+\]|[0-9A-Za-z#_@.-])(?<quantifier>[?*+]|\{\d{1,2}(?:,\d{0,2})?\})?/y

/**
 * Returns the problem of a rule, or undefined. `match` may contain groups, but no nested or
 * repeated ones.
 */
export function numberRuleProblem({ match, replace }: NumberRule): string | undefined {
  if (match === '') return 'match is empty'
  if (match.length > maxRuleLength || replace.length > maxRuleLength)
    return `match and replace have at most ${maxRuleLength} characters`
  const groups = readGroups(match)
  if (typeof groups === 'string') return groups
  if (!/^(?:[0-9A-Za-z*#+_.@-]|\$[1-9])*$/.test(replace))
    return 'replace may hold number characters and $1 to $9 only'
  for (const [, group] of replace.matchAll(/\$([1-9])/g))
    if (Number(group) > groups) return `replace refers to $${group}, match has ${groups} groups`
  return isRegExp(match) ? undefined : 'match is not a regular expression'
}

/** Returns the number of capturing groups of `match`, or its problem. */
function readGroups(match: string): number | string {
  const start = match.startsWith('^') ? 1 : 0
  const end = match.endsWith('$') && !match.endsWith('\\$') ? match.length - 1 : match.length
  const effort = new Effort(start === 1)
  let groups = 0
  let isInGroup = false
  token.lastIndex = start
  while (token.lastIndex < end) {
    const position = token.lastIndex
    const found = token.exec(match)
    if (found === null) return `match is not understood at position ${position + 1}`
    const { open, close, alternative, quantifier } = found.groups ?? {}
    if (open !== undefined && isInGroup) return 'match has a group inside a group'
    if (close !== undefined && !isInGroup) return 'match closes a group that is not open'
    if (open !== undefined) isInGroup = true
    if (close !== undefined) isInGroup = false
    if (open === '(') groups += 1
    if (alternative !== undefined) effort.addAlternative(isInGroup)
    else effort.addQuantifier(quantifier)
  }
  if (isInGroup) return 'match does not close its group'
  return effort.ways > maxWays ? 'match may take too long: use fewer of *, +, ? and |' : groups
}

/** Counts the paths by which a backtracking matcher may try a rule. */
class Effort {
  /** Positions that may match anywhere in the number, but only in this order. */
  #wandering: number
  #choices = 1

  constructor(isAnchored: boolean) {
    this.#wandering = isAnchored ? 0 : 1
  }

  /** The number of ways to place the ordered positions: a binomial coefficient. */
  get ways(): number {
    let ways = this.#choices
    for (let place = 1; place <= this.#wandering; place += 1)
      ways *= (maxNumberLength + place) / place
    return ways
  }

  addQuantifier(quantifier: string | undefined): void {
    if (quantifier === undefined) return
    const [, least = '', comma = '', most = ''] = /^\{(\d+)(,?)(\d*)\}$/.exec(quantifier) ?? []
    if (quantifier === '?') this.#choices *= 2
    else if (comma !== '' && most !== '') this.#choices *= Math.max(1, +most - +least + 1)
    else if (comma !== '' || quantifier === '*' || quantifier === '+') this.#wandering += 1
  }

  /** Outside groups, `^` belongs to the first alternative only. */
  addAlternative(isInGroup: boolean): void {
    this.#choices *= 2
    if (!isInGroup && this.#wandering === 0) this.#wandering = 1
  }
}

function isRegExp(source: string): boolean {
  try {
    return new RegExp(source) instanceof RegExp
  } catch {
    return false
  }
}

/** The rewriting of a number without rules. */
export const unchanged = (number: string): string => number

/**
 * Returns the rules as one function on numbers: `unchanged` if there are none. Rules with a problem
 * (`numberRuleProblem`) are skipped.
 */
export function compileNumberRules(rules: readonly NumberRule[]): (number: string) => string {
  const compiled = rules
    .filter((rule) => numberRuleProblem(rule) === undefined)
    .map(({ match, replace }) => ({ pattern: warmedUp(new RegExp(match)), replace }))
  if (compiled.length === 0) return unchanged
  return (number) => {
    if (number.length > maxNumberLength) return number
    for (const { pattern, replace } of compiled) {
      const found = pattern.exec(number)
      if (found) return rewritten(number, found, replace)
    }
    return number
  }
}

/** V8 interprets a pattern on its first use, ten times slower than later. */
function warmedUp(pattern: RegExp): RegExp {
  pattern.test('0')
  pattern.test('0')
  return pattern
}

function rewritten(number: string, found: RegExpExecArray, replace: string): string {
  const put = replace.replace(/\$([1-9])/g, (_, group: string) => found[Number(group)] ?? '')
  return number.slice(0, found.index) + put + number.slice(found.index + found[0].length)
}

/** Longer prefixes name one number. */
const MAX_PREFIX_LENGTH = 20

/**
 * Returns the digits of a prefix as it was written, or why it is none. A prefix is `+`, digits
 * (with `*` and `#`) and spaces. Whatever else stands in a number for the eye means something in a
 * table: `447-449` is a range, `44792.0` a number of a spreadsheet, and `44(0)20` has a digit that
 * nobody dials. Without those signs each would be another prefix.
 */
export function readPrefix(
  spelling: string,
):
  | { readonly kind: 'prefix'; readonly text: string }
  | { readonly kind: 'problem'; readonly message: string } {
  const plain = spelling.replaceAll(' ', '')
  if (/^\+?[0-9*#]{0,20}$/.test(plain)) return { kind: 'prefix', text: plain }
  const shown = JSON.stringify(printable(spelling))
  return { kind: 'problem', message: `${shown} is no prefix: ${prefixProblem(plain)}` }
}

function prefixProblem(plain: string): string {
  if (/^\+?[0-9*#]+$/.test(plain)) return `it has more than ${MAX_PREFIX_LENGTH} digits`
  if (/[0-9](?:[-–—−~:/]|\.\.+)\+?[0-9]/.test(plain))
    return 'it looks like a range, each of its prefixes is to be named'
  if (/[0-9][eE][+-]?[0-9]/.test(plain))
    return 'it is in scientific notation, which has lost digits'
  if (/^[0-9]+[.,][0-9]*$/.test(plain)) return 'it looks like a decimal number'
  if (/[0-9][,;|][0-9]/.test(plain))
    return 'it looks like a list, each of its prefixes is to be named'
  return 'only digits, spaces, * and # are allowed, after an optional +'
}

/**
 * The stored form of a prefix of called numbers that a spend guard brakes. A price may differ
 * between two spellings of a number; what a guard covers does not: `+1900`, `001900`, `01900`, `1
 * 900` and `*31#1900` all begin with `1900`. A prefix with one leading zero, such as `0900`, is a
 * national one, and covers numbers that are dialled with a zero. Exit codes are left out, too:
 * those of the installation, or where it names none, the usual ones.
 *
 * Empty: all numbers. Undefined: it is no prefix, or only zeros, which say nothing.
 */
export function normalPrefix(text: string, exitCodes?: ExitCodes): string | undefined {
  const read = readPrefix(text)
  if (read.kind === 'problem') return undefined
  const given = read.text
  if (given === '') return ''
  const shortened = internationalPrefix(given, exitCodes)
  if (shortened === ANY_INTERNATIONAL) return undefined
  const plain = shortened === withoutPlus(given) ? given : shortened
  const digits = withoutPlus(plain)
  const significant = digits.replace(/^0+/, '')
  if (significant === '' || significant.length > MAX_PREFIX_LENGTH) return undefined
  return /^0[^0]/.test(plain) ? `0${significant}` : significant
}

/** Whether `number`, in the normal form of calls, begins with `prefix`, in its stored form. */
export function coversNumber(prefix: string, number: string, exitCodes?: ExitCodes): boolean {
  const significant = comparedPrefix(prefix, exitCodes)
  return (
    prefix === '' || spellingsOf(number, exitCodes).some((digits) => digits.startsWith(significant))
  )
}

/**
 * A stored prefix as it is compared: it may have been stored before the installation had these exit
 * codes.
 */
export function comparedPrefix(prefix: string, exitCodes?: ExitCodes): string {
  const significant = internationalPrefix(prefix, exitCodes)
  return significant === ANY_INTERNATIONAL ? prefix : significant
}

/**
 * The digits that a number may stand for, to compare with prefixes: one text for nearly every
 * number, a few for odd beginnings.
 */
export function spellingsOf(number: string, exitCodes = usualExitCodes): readonly string[] {
  const digits = withoutPlus(number)
  if (!/^[0*#]/.test(digits) && !exitCodes.some((code) => digits.startsWith(code))) return [digits]
  const spellings = new Set<string>()
  addSpellings(digits, { into: spellings, exitCodes, codesLeft: MAX_CODES })
  return [...spellings]
}

interface Spelling {
  readonly into: Set<string>
  readonly exitCodes: ExitCodes
  /** Service codes may stand in front of each other. */
  readonly codesLeft: number
}

const MAX_CODES = 3

/** `*31#` and its like are closed by a sign, `*67` and `*267` are not. */
const serviceCodes = [/^[*#]+[0-9]{0,4}[*#]+/, /^[*#]+[0-9]{2}/, /^[*#]+[0-9]{3}/] as const

function addSpellings(digits: string, spelling: Spelling): void {
  const { into, exitCodes, codesLeft } = spelling
  into.add(digits)
  for (const code of exitCodes) if (digits.startsWith(code)) into.add(withoutZeros(digits, code))
  if (digits.startsWith('0')) {
    const significant = withoutZeros(digits)
    into.add(significant)
    // The spelling behind a digit for an outside line, a national number, or an exit code.
    into.add(`0${significant}`)
    for (const code of exitCodes)
      if (digits.startsWith(`0${code}`)) into.add(withoutZeros(digits, `0${code}`))
    return
  }
  if (codesLeft === 0 || !/^[*#]/.test(digits)) return
  for (const code of serviceCodes) {
    const rest = digits.replace(code, '')
    if (rest !== digits) addSpellings(rest, { into, exitCodes, codesLeft: codesLeft - 1 })
  }
}

const withoutZeros = (digits: string, code = ''): string =>
  digits.slice(code.length).replace(/^0+/, '')

/**
 * The exit codes of spend guards where the installation names none: `00` (recommended by ITU-T
 * E.164), `0011` of Australia, `011` of North America, and `810` of Russia and its neighbours.
 */
export const usualExitCodes: ExitCodes = ['0011', '011', '810', '00']

/**
 * A shorter number is an extension or a service of the place, and no country code begins with 0.
 */
const INTERNATIONAL = /^[1-9][0-9]{4}[0-9*#]*$/

/**
 * A number in the normal form, with `+` in place of an exit code, also of one that was dialled
 * again and again.
 */
export function international(number: string, exitCodes: ExitCodes | undefined): string {
  if (exitCodes === undefined) return number
  // No country code begins with 0: behind a plus, such a code is one all the same.
  let rest = number.startsWith('+0') ? number.slice(1) : number
  for (let code = exitCodeOf(rest, exitCodes); code !== ''; code = exitCodeOf(rest, exitCodes)) {
    rest = rest.slice(code.length)
    if (INTERNATIONAL.test(rest)) return `+${rest}`
  }
  return number
}

/** The meaning of a prefix that is only an exit code: every number with a `+`. */
export const ANY_INTERNATIONAL = '+'

/**
 * Returns the form in which a stored prefix compares with results of `international`; without a
 * leading `+`.
 */
export function internationalPrefix(prefix: string, exitCodes: ExitCodes | undefined): string {
  const digits = withoutPlus(prefix)
  const code = exitCodes === undefined ? '' : exitCodeOf(digits, exitCodes)
  if (code === '') return digits
  const rest = digits.slice(code.length)
  if (rest === '') return ANY_INTERNATIONAL
  return /^[1-9]/.test(rest) ? rest : digits
}

/**
 * How long a prefix is that means every number with a `+`, in a number that has passed
 * `international`: 0 behind a plus, else the code that the number still begins with, such as
 * `000441632960000`. Undefined: it begins with none.
 */
export function codeLength(number: string, exitCodes: ExitCodes = []): number | undefined {
  const digits = number.startsWith('+0') ? number.slice(1) : number
  const code = exitCodeOf(digits, exitCodes)
  if (code !== '') return code.length
  return number.startsWith('+') ? 0 : undefined
}

/**
 * The numbers by which a call is priced, blocked and guarded, of which a gateway gets `sent` in
 * place of `dialled`. Digits in front of the whole dialled number may complete it, or be a
 * carrier's own: both count. A code with `*` or `#` is a carrier's own, and says nothing.
 */
export function countedNumbers(
  sent: string,
  dialled: string,
  exitCodes: ExitCodes = ['00'],
): readonly string[] {
  const { kind, text } = readNumber(sent)
  if (kind !== 'number') return [dialled]
  const number = international(text, exitCodes)
  const digits = withoutPlus(number)
  const own = withoutPlus(dialled)
  if (digits === own) return [dialled]
  if (!digits.endsWith(own)) return [number]
  const front = digits.slice(0, -own.length)
  return /[*#]/.test(front) ? [dialled] : [number, dialled]
}

/** Returns the longest exit code at the start of `digits`; empty: none. */
export const exitCodeOf = (digits: string, exitCodes: ExitCodes): string =>
  exitCodes.find((code) => digits.startsWith(code)) ?? ''
