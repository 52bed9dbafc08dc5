/** Prices, seconds and flags as decks have them. An amount is exact, or it is refused. */
import type { DeckMapping } from './deck-mapping.ts'

export type PriceRules = Pick<DeckMapping, 'decimal' | 'thousands' | 'more_decimals'> & {
  /** Currency of the plan. */
  readonly currency: string
}

export type ReadPrice =
  | { readonly kind: 'price'; readonly micros: number; readonly isRounded: boolean }
  | { readonly kind: 'problem'; readonly message: string }

/** 1,000,000 units a minute, as a rate may have. */
const MAX_MICROS = 1_000_000_000_000
/** Decimals of a price that may be rounded. */
const MAX_DECIMALS = 12
/** Decimals that are stored. */
const STORED_DECIMALS = 6

export function readPrice(cell: string, rules: PriceRules): ReadPrice {
  const amount = withoutCurrency(cell.trim(), rules.currency)
  if (typeof amount !== 'string') return amount
  if (/^[+-]?[\d.,]+e[+-]?\d+$/i.test(amount))
    return problem(`is written with an exponent (${cell}): format the column as a number`)
  const { decimal, thousands, more_decimals: rounding } = rules
  const parts = amount.split(decimal)
  const [units = '', fraction = ''] = parts
  const whole = wholeUnits(units, thousands)
  if (
    amount === '' ||
    parts.length > 2 ||
    whole === undefined ||
    !/^\d*$/.test(fraction) ||
    amount === decimal
  )
    return problem(notAmount(amount, rules))
  const exact = fraction.replace(/0+$/, '')
  if (exact.length > MAX_DECIMALS) return problem(`has more than ${MAX_DECIMALS} decimals`)
  const beyond = exact.slice(STORED_DECIMALS)
  if (beyond !== '' && rounding === 'refuse')
    return problem(
      `has ${exact.length} decimals, a price is kept with ${STORED_DECIMALS}: say by ` +
        'more_decimals whether it is rounded "up", "down" or to the "nearest"',
    )
  const micros =
    Number(whole) * 1_000_000 +
    Number(exact.slice(0, STORED_DECIMALS).padEnd(STORED_DECIMALS, '0')) +
    roundedBy(beyond, rounding)
  if (micros > MAX_MICROS) return problem('is more than 1000000')
  return { kind: 'price', micros, isRounded: beyond !== '' }
}

const problem = (message: string): ReadPrice & { kind: 'problem' } => ({ kind: 'problem', message })

function roundedBy(beyond: string, rounding: PriceRules['more_decimals']): 0 | 1 {
  if (beyond === '' || rounding === 'down' || rounding === 'refuse') return 0
  return rounding === 'up' || Number(beyond[0]) >= 5 ? 1 : 0
}

/** The digits before the decimals; undefined: they are grouped otherwise. */
function wholeUnits(units: string, thousands: string): string | undefined {
  if (/^\d{0,10}$/.test(units)) return units === '' ? '0' : units
  if (thousands === '') return undefined
  const groups = (thousands === ' ' ? units.replaceAll(/[\u00a0\u202f]/g, ' ') : units).split(
    thousands,
  )
  const [first = '', ...others] = groups
  const isGrouped = /^[1-9]\d{0,2}$/.test(first) && others.every((group) => /^\d{3}$/.test(group))
  return isGrouped && groups.length <= 4 ? groups.join('') : undefined
}

function notAmount(amount: string, { decimal, thousands }: PriceRules): string {
  if (amount === '') return 'is required'
  if (amount.startsWith('-')) return 'is below zero: leave the line out if it is a credit'
  const sign = /^[\d.,' \u00a0]+$/.test(amount)
  if (sign && decimal === '.' && amount.includes(','))
    return `has a comma (${amount}): say by decimal or thousands what it is`
  if (sign && decimal === ',' && amount.includes('.'))
    return `has a point (${amount}): say by decimal or thousands what it is`
  if (sign && thousands === '') return `has groups of digits (${amount}): name thousands`
  return `is not an amount: ${JSON.stringify(amount.slice(0, 40))}`
}

const dollars: ReadonlySet<string> = new Set([
  'AUD',
  'CAD',
  'HKD',
  'MXN',
  'NZD',
  'SGD',
  'TWD',
  'USD',
])

const signs: Readonly<Record<string, (currency: string) => boolean>> = {
  $: (currency) => dollars.has(currency),
  '€': (currency) => currency === 'EUR',
  '£': (currency) => currency === 'GBP',
}

/** A price may name its currency, which must be that of the plan. */
function withoutCurrency(
  text: string,
  currency: string,
): string | (ReadPrice & { kind: 'problem' }) {
  if (/^[\d.,]*$/.test(text)) return text
  const bare = text.replace(/^=?"(.*)"$/, '$1').replace(/^'/, '')
  const match = /^([A-Z]{3}|[$€£])?\s*(.*?)\s*([A-Z]{3}|[$€£])?$/s.exec(bare)
  const [, before, amount = bare, after] = match ?? []
  for (const named of [before, after])
    if (named !== undefined && !(signs[named]?.(currency) ?? named === currency))
      return problem(`is in ${named}, the rate plan in ${currency}`)
  return amount
}

/** Seconds of an increment; a problem otherwise. */
export function readSeconds(cell: string, least: number): number | string {
  const text = cell.trim().replace(/\s*(?:s|sec|secs|seconds?)\.?$/i, '')
  const seconds = /^\d{1,6}$/.test(text) ? Number(text) : Number.NaN
  if (seconds >= least && seconds <= 86_400) return seconds
  return `must be whole seconds from ${least} to 86400`
}

/** `30/6`, `30+6`, `1:1`, `60`: the first and the further increments; a problem otherwise. */
export function readIncrements(cell: string): readonly [first: number, next: number] | string {
  const [first = '', next = first, ...others] = cell.trim().split(/\s*[/+:-]\s*/)
  const read = [readSeconds(first, 0), readSeconds(next, 1)] as const
  const [one, other] = read
  if (others.length > 0 || typeof one === 'string' || typeof other === 'string')
    return 'must be two numbers of seconds, such as "30/6"'
  return [one, other]
}

const yes: ReadonlySet<string> = new Set(['yes', 'y', 'true', '1', 'blocked', 'x', 'closed', 'ja'])
const no: ReadonlySet<string> = new Set(['no', 'n', 'false', '0', 'open', '', 'active', 'nein'])

/** Undefined: neither yes nor no. */
export function readFlag(cell: string): boolean | undefined {
  const word = cell.trim().toLowerCase()
  if (yes.has(word)) return true
  return no.has(word) ? false : undefined
}
