/**
 * Cleans texts for people and language models. Names, numbers and reasons come from
 * untrusted parties: each text is bounded and contains nothing invisible and no terminal control
 * sequence.
 */
import { moneyToDecimal } from '../../schema/columns.ts'

const MAX_TEXT = 512
/** Maximum nesting; deeper values are left out. */
const MAX_DEPTH = 8
const MAX_MEMBERS = 1_000

/**
 * Control, format (bidirectional marks, zero-width, tags), surrogate and private-use characters,
 * line separators, and characters without a glyph (fillers, the whole tag block), except the
 * variation selectors of emoji.
 */
const unsafe =
  /(?![\ufe00-\ufe0f])[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu
/** A token (`control/auth/app-key.ts`) anywhere in a text; its first 12 characters are public. */
const token = /(?:sbc_live_|ak_|bill_)[\w-]{64}/g
/** A session token (RFC 7519): three parts, of which the first two are JSON. */
const session = /eyJ[\w-]+\.eyJ[\w-]+\.[\w-]*/g

/** Cleans one text. */
export function cleanText(text: string, maxLength = MAX_TEXT): string {
  // Cut before the slow part, far enough beyond the bound that a token across it is still matched.
  const start = text.length > maxLength + 2_048 ? text.slice(0, maxLength + 2_048) : text
  const shown = start
    .replace(unsafe, '\ufffd')
    .replace(token, (found) => `${found.slice(0, 12)}…`)
    .replace(session, 'eyJ…')
  // Do not cut a character outside the basic plane in two.
  return shown.length <= maxLength
    ? shown
    : `${shown.slice(0, maxLength - 1).replace(/[\ud800-\udbff]$/, '')}…`
}

/** A stored or given text inside a sentence of ours: it cannot be taken for a part of it. */
export const quoted = (text: string): string => JSON.stringify(cleanText(text, 100))

/** Cleans every text in a JSON value, including the keys. */
export function clean(value: unknown, depth = 0): unknown {
  if (typeof value === 'string') return cleanText(value)
  if (typeof value !== 'object' || value === null) return value
  if (depth === MAX_DEPTH) return null
  if (Array.isArray(value))
    return value.slice(0, MAX_MEMBERS).map((member) => clean(member, depth + 1))
  return Object.fromEntries(
    Object.entries(value)
      .slice(0, MAX_MEMBERS)
      .map(([key, member]) => [cleanText(key, 100), clean(member, depth + 1)]),
  )
}

const MAX_ARGUMENTS = 1_000

/** Formats arguments for the audit log: one bounded line of flat JSON without tokens. */
export function describeArguments(given: unknown): string {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) return '{}'
  const shown = Object.entries(given)
    .slice(0, 20)
    .map(([key, value]) => [cleanText(key, 50), describeValue(value)])
  return cleanText(JSON.stringify(Object.fromEntries(shown)), MAX_ARGUMENTS)
}

function describeValue(value: unknown): unknown {
  if (typeof value === 'string') return cleanText(value, 200)
  return typeof value === 'object' && value !== null ? '[object]' : value
}

/**
 * As far as a person who reads a finding looks. What a person approves is said by `exactMoneyText`.
 */
export const moneyText = (micros: number, currency: string | null): string =>
  `${moneyToDecimal(Math.round(micros / 10_000) * 10_000)} ${currency ?? ''}`.trim()

/** Writes an amount to the last micro-unit: 0.0149 is no 0.01. */
export const exactMoneyText = (micros: number, currency: string | null): string =>
  `${moneyToDecimal(micros)} ${currency ?? ''}`.trim()

export const plural = (count: number, noun: string): string =>
  `${count} ${noun}${count === 1 ? '' : 's'}`
