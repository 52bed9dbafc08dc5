/**
 * What leaves a tool is read by a language model: names, numbers and reasons come from strangers, so
 * that every text is bounded, and holds nothing that is invisible or steers a terminal.
 */

const MAX_TEXT = 512
/** Deeper than any answer: what is below is left out. */
const MAX_DEPTH = 8
const MAX_MEMBERS = 1_000

/**
 * Control, format (bidirectional marks, zero-width, tags), surrogate and private characters; line separators; all
 * that is shown as nothing (fillers, the whole block of tags), but for the selectors that an emoji has.
 */
const unsafe =
  /(?![\ufe00-\ufe0f])[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu
/** The form of a token (`auth/keys/app-key.ts`), wherever it stands; its first 12 characters are public. */
const token = /(?:sbc_live_|ak_|bill_)[\w-]{64}/g
/** A session (RFC 7519): three parts, the first two of them JSON. */
const session = /eyJ[\w-]+\.eyJ[\w-]+\.[\w-]*/g

/** One text as an answer may hold it. */
export function cleanText(text: string, maxLength = MAX_TEXT): string {
  // Cut before the slow part, far enough behind the bound that a token across it is still seen whole.
  const start = text.length > maxLength + 2_048 ? text.slice(0, maxLength + 2_048) : text
  const shown = start
    .replace(unsafe, '\ufffd')
    .replace(token, (found) => `${found.slice(0, 12)}…`)
    .replace(session, 'eyJ…')
  // A character outside the basic plane is not cut in two.
  return shown.length <= maxLength
    ? shown
    : `${shown.slice(0, maxLength - 1).replace(/[\ud800-\udbff]$/, '')}…`
}

/** A value of JSON with every text in it cleaned, keys included. */
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

/** Arguments for the audit: one line of JSON, flat, bounded, without anything that looks like a token. */
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
