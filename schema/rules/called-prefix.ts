/**
 * Prefixes of called numbers that a spend guard brakes. A price may differ between two spellings of a number; what a
 * guard covers does not: `+1900`, `001900`, `01900`, `1 (900)` and `*31#1900` all begin with `1900`. A prefix with one
 * leading zero, such as `0900`, is a national one, and covers numbers that are dialled with a zero. Exit codes are left
 * out, too: those of the installation, or where it names none, the usual ones.
 */
import {
  ANY_INTERNATIONAL,
  type ExitCodes,
  internationalPrefix,
  usualExitCodes,
} from './exit-codes.ts'
import { withoutPlus, withoutSeparators } from './phone-number.ts'

/** Longer prefixes name one number. */
const MAX_PREFIX_LENGTH = 20

/** The stored form of a prefix; empty: all numbers. Undefined: it is no prefix, or only zeros, which say nothing. */
export function normalPrefix(text: string, exitCodes?: ExitCodes): string | undefined {
  const given = withoutSeparators(text)
  if (given === '') return ''
  if (!/^\+?[0-9*#]+$/.test(given)) return undefined
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

/** A stored prefix as it is compared: it may have been stored before the installation had these exit codes. */
export function comparedPrefix(prefix: string, exitCodes?: ExitCodes): string {
  const significant = internationalPrefix(prefix, exitCodes)
  return significant === ANY_INTERNATIONAL ? prefix : significant
}

/** What a number may be, in the form of prefixes: one text for nearly every number, a few where it begins oddly. */
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
    // Behind a digit for an outside line, a national number, or an exit code.
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
