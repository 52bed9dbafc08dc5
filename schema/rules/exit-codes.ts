/**
 * Exit codes: what is dialled in place of `+`, such as `00` in Europe and `011` in North America. Which digits are one
 * depends on the place: `0114` is +4 in Denver, and Sheffield in London. So an installation names its own (`EXIT_CODES`),
 * and a number that begins with one of them becomes the number with `+`, before it is priced, blocked, routed or counted.
 */
import { readNumber, withoutPlus } from './phone-number.ts'

/** The longest first. */
export type ExitCodes = readonly string[]

/**
 * What a spend guard takes for one where the installation names none: `00` (recommended by ITU-T E.164), `0011` of
 * Australia, `011` of North America, and `810` of Russia and its neighbours.
 */
export const usualExitCodes: ExitCodes = ['0011', '011', '810', '00']

/** A shorter number is an extension or a service of the place, and no country code begins with 0. */
const INTERNATIONAL = /^[1-9][0-9]{4}[0-9*#]*$/

/** A number in the normal form, with `+` in place of an exit code, also of one that was dialled again and again. */
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

/** Every number that has a `+`: what a prefix means that is an exit code and nothing more. */
export const ANY_INTERNATIONAL = '+'

/** How a stored prefix compares with numbers that have passed `international`; without a leading `+`. */
export function internationalPrefix(prefix: string, exitCodes: ExitCodes | undefined): string {
  const digits = withoutPlus(prefix)
  const code = exitCodes === undefined ? '' : exitCodeOf(digits, exitCodes)
  if (code === '') return digits
  const rest = digits.slice(code.length)
  if (rest === '') return ANY_INTERNATIONAL
  return /^[1-9]/.test(rest) ? rest : digits
}

/**
 * How long a prefix is that means every number with a `+`, in a number that has passed `international`: 0 behind a plus, else
 * the code that the number still begins with, such as `000441632960000`. Undefined: it begins with none.
 */
export function codeLength(number: string, exitCodes: ExitCodes = []): number | undefined {
  const digits = number.startsWith('+0') ? number.slice(1) : number
  const code = exitCodeOf(digits, exitCodes)
  if (code !== '') return code.length
  return number.startsWith('+') ? 0 : undefined
}

/**
 * The numbers by which a call is priced, blocked and guarded, of which a gateway gets `sent` in place of `dialled`. Digits in
 * front of the whole dialled number may complete it, or be a carrier's own: both count. A code with `*` or `#` is a carrier's
 * own, and says nothing.
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

/** The longest one that `digits` begin with; empty: none. */
export const exitCodeOf = (digits: string, exitCodes: ExitCodes): string =>
  exitCodes.find((code) => digits.startsWith(code)) ?? ''
