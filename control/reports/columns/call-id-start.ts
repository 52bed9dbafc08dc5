/** The beginning of a Call-ID as a number: calls are found by as many characters, or by more. */
import { textHash } from './text-hash.ts'

/** Fewer characters begin too many Call-IDs. */
export const MIN_CALL_ID = 6

/** A column of them takes two bytes each. One of so many other Call-IDs is met by chance. */
const STARTS = 65_000

/** Undefined: the text is shorter. */
export const callIdStart = (text: string): number | undefined =>
  text.length < MIN_CALL_ID ? undefined : textHash(text.slice(0, MIN_CALL_ID)) % STARTS
