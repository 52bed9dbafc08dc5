/** The canonical form of a telephone number in a PASSporT (RFC 8224 §8.3). Pure. */
import { withoutPlus, withoutSeparators } from '../rules/numbers.ts'

/** Digits, `*` and `#` alone; undefined: the text is no telephone number. */
export function canonicalNumber(text: string): string | undefined {
  if (text.length > MAX_LENGTH) return undefined
  const plain = withoutPlus(isCanonical.test(text) ? text : withoutSeparators(text))
  return isCanonical.test(plain) ? plain : undefined
}

const MAX_LENGTH = 128
const isCanonical = /^[0-9*#]{1,64}$/
