/**
 * The prefixes that a cell of a deck names: one, a list, ranges. Whatever has two readings is
 * refused with advice, because a wrong prefix prices other numbers.
 */
import type { DeckMapping } from './deck-mapping.ts'

export type PrefixRules = Pick<
  DeckMapping,
  'country_code' | 'exit_code' | 'spaces' | 'trunk_zero' | 'thousands'
>

export type ReadPrefixes =
  | { readonly kind: 'prefixes'; readonly prefixes: readonly string[] }
  | { readonly kind: 'empty' }
  | { readonly kind: 'problem'; readonly message: string }

/** Digits of the longest prefix. */
const MAX_DIGITS = 20
/** Prefixes that one cell may name. */
const MAX_PREFIXES = 1_000

/** @param country what the column of country codes has in the line; empty: nothing. */
export function readPrefixes(cell: string, country: string, rules: PrefixRules): ReadPrefixes {
  const code = countryCode(country, rules)
  if (code.kind === 'problem') return code
  const text = unquoted(cell)
  // Most cells are plain digits.
  if (code.digits === '' && /^[1-9]\d{0,19}$/.test(text) && !text.startsWith(rules.exit_code))
    return found([text])
  if (text === '' || /^['"]+$/.test(text))
    return code.digits === '' || country === '' ? { kind: 'empty' } : found([code.digits])
  const number = numberOfSpreadsheet(text)
  if (number !== undefined) return problem(number)
  if (rules.thousands === ',' && /^\d{1,3}(?:,\d{3})+$/.test(text))
    return problem(
      `may be a list or a number with thousands (${shown(text)}): format the column as text, and ` +
        'export the deck again',
    )
  const parts = partsOf(text, rules)
  if (typeof parts === 'string') return problem(parts)
  if (parts.length === 0) return problem(`is not a prefix: ${shown(text)}`)
  const prefixes: string[] = []
  for (const part of parts) {
    const read = readPart(part, code.digits, rules)
    if (typeof read === 'string') return problem(read)
    const [start = '', one = start] = [read[0], prefixes[0]]
    if (start[0] !== one[0] || (code.digits === '' && isMaybeEnding(start, one)))
      return problem(
        `is a list with ${one} and ${start}, which do not begin alike: write each prefix ` +
          'whole, or on a line of its own',
      )
    prefixes.push(...read)
    if (prefixes.length > MAX_PREFIXES)
      return problem(`names more than ${MAX_PREFIXES} prefixes: write several lines`)
  }
  return found([...new Set(prefixes)])
}

/** `4474/45` may be 4474 and 4475, or Denmark, and `447,4` a decimal number. */
const isMaybeEnding = (prefix: string, first: string): boolean =>
  prefix.length < first.length && (prefix.length < 3 || prefix[1] !== first[1])

const found = (prefixes: readonly string[]): ReadPrefixes => ({ kind: 'prefixes', prefixes })
const problem = (message: string): ReadPrefixes & { kind: 'problem' } => ({
  kind: 'problem',
  message,
})

type CountryCode =
  { readonly kind: 'digits'; readonly digits: string } | (ReadPrefixes & { kind: 'problem' })

function countryCode(cell: string, { country_code = '', exit_code }: PrefixRules): CountryCode {
  if (cell === '') return { kind: 'digits', digits: country_code }
  const number = numberOfSpreadsheet(unquoted(cell))
  if (number !== undefined) return problem(`of the country code ${number}`)
  const digits = withoutExit(unquoted(cell).replaceAll(/[\s\u00a0]/g, ''), exit_code)
  if (/^[1-9]\d{0,6}$/.test(digits)) return { kind: 'digits', digits }
  return problem(`has a country code that is not digits: ${shown(cell)}`)
}

/** Spreadsheets write `="0044"` and `'0044` for digits that are no number. */
function unquoted(cell: string): string {
  const text = cell.trim()
  if (/^\d*$/.test(text)) return text
  return text
    .replace(/^="(.*)"$/s, '$1')
    .replace(/^(["'])(.*)\1$/s, '$2')
    .replace(/^'/, '')
    .trim()
}

/** Why a number of a spreadsheet is no prefix: its digits may not be those that were meant. */
function numberOfSpreadsheet(text: string): string | undefined {
  if (/^[+-]?\d+(?:[.,]\d+)?e[+-]?\d+$/i.test(text))
    return (
      `is a number that a spreadsheet has shortened (${shown(text)}), its digits are lost: ` +
      'format the column as text, and export the deck again'
    )
  if (/^\d+(?:[.]\d+|[.,]0+)$/.test(text))
    return (
      `is a decimal number (${shown(text)}), not a prefix: format the column as text, and ` +
      'export the deck again'
    )
  return undefined
}

/** The prefixes and ranges of a cell, or why they cannot be told apart. */
function partsOf(text: string, { spaces }: PrefixRules): readonly string[] | string {
  const listed = text
    .split(/[,;/|\r\n]+/)
    .map((part) => part.trim())
    .filter((part) => part !== '')
  const parts: string[] = []
  for (const part of listed) {
    // The signs of a range may have spaces around them.
    const groups = part.replaceAll(/\s*[-–—]\s*/g, '-').split(/[\s\u00a0]+/)
    if (groups.length === 1 || spaces === 'list') parts.push(...groups)
    else if (spaces === undefined && isMaybeList(groups))
      return (
        `has spaces between groups of digits (${shown(part)}): say by spaces = "list" that ` +
        'they are several prefixes, or by "join" that they are one'
      )
    else parts.push(groups.join(''))
  }
  return parts
}

/** Groups of one length that begin alike look like several prefixes. */
const isMaybeList = (groups: readonly string[]): boolean => {
  const [first = ''] = groups
  return (
    groups.some((group) => group.includes('-')) ||
    (first.length >= 3 &&
      groups.every((group) => group.length === first.length && group[0] === first[0]))
  )
}

/** Prefixes of one part, or why it has none. */
function readPart(part: string, country: string, rules: PrefixRules): readonly string[] | string {
  const number = numberOfSpreadsheet(part)
  if (number !== undefined) return number
  const ends = part.split('-')
  if (ends.length > 2 || ends.includes(''))
    return `${shown(part)} is neither a prefix nor a range: write digits, or from-to`
  const read = ends.map((end) => readOne(end, country, rules))
  const wrong = read.find(({ kind }) => kind === 'problem')
  if (wrong !== undefined) return wrong.text
  const [from = '', to = from] = read.map(({ text }) => text)
  if (ends.length === 1) return [from]
  if (from.length !== to.length)
    return (
      `${shown(part)} is a range whose ends have different lengths: write both whole, such as ` +
      '4479200-4479299'
    )
  if (from > to) return `${shown(part)} is a range that ends before it begins`
  if (from[0] !== to[0])
    return `${shown(part)} is a range whose ends do not begin alike: write several`
  return coverOf(from, to)
}

interface ReadOne {
  readonly kind: 'digits' | 'problem'
  readonly text: string
}

function readOne(written: string, country: string, rules: PrefixRules): ReadOne {
  const wrong = (text: string): ReadOne => ({ kind: 'problem', text })
  const digits = withoutExit(written, rules.exit_code)
  if (!/^\d+$/.test(digits)) return wrong(`${shown(written)} is not a prefix: write digits`)
  const whole = country === '' || digits.length < written.length ? digits : area(digits)
  if (whole === undefined)
    return wrong(
      `${shown(written)} begins with 0: say by trunk_zero whether to "drop" it after the ` +
        'country code, or to "keep" it, as in Italy',
    )
  if (whole.startsWith('0'))
    return wrong(
      `${shown(written)} begins with 0, so it is a national number: name the column of the ` +
        'country code, or country_code for the whole deck',
    )
  if (whole.length > MAX_DIGITS)
    return wrong(`${shown(written)} has more than ${MAX_DIGITS} digits`)
  return { kind: 'digits', text: whole }

  function area(local: string): string | undefined {
    if (!local.startsWith('0')) return `${country}${local}`
    if (rules.trunk_zero === undefined) return undefined
    return `${country}${rules.trunk_zero === 'keep' ? local : local.slice(1)}`
  }
}

const withoutExit = (written: string, exit: string): string => {
  if (written.startsWith('+')) return written.slice(1)
  return written.startsWith(exit) ? written.slice(exit.length) : written
}

/**
 * The fewest prefixes that hold all numbers of a range: `4479200-4479299` is 44792. Both ends have
 * the same number of digits.
 */
function coverOf(from: string, to: string): readonly string[] {
  const prefixes: string[] = []
  const cover = (start: string, low: string, high: string): void => {
    if (/^0*$/.test(low) && /^9*$/.test(high)) {
      prefixes.push(start)
      return
    }
    const [first, last] = [Number(low[0]), Number(high[0])]
    for (let digit = first; digit <= last; digit += 1) {
      const below = digit === first ? low.slice(1) : '0'.repeat(low.length - 1)
      const above = digit === last ? high.slice(1) : '9'.repeat(high.length - 1)
      cover(`${start}${digit}`, below, above)
    }
  }
  // Without their common start, which is a prefix of every number of the range.
  let common = 0
  while (common < from.length && from[common] === to[common]) common += 1
  cover(from.slice(0, common), from.slice(common), to.slice(common))
  return prefixes
}

const MAX_SHOWN = 40

const shown = (text: string): string =>
  JSON.stringify(text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text)
