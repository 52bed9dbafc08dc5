/** Finds the known name that a misspelled one resembles. */

/**
 * Returns the name of `known` that `word` misspells: at most two letters differ, or a part is missing or
 * added.
 */
export function nearMiss(word: string, known: Iterable<string>): string | undefined {
  if (word.length > MAX_LENGTH) return undefined
  let nearest: string | undefined
  let least = Infinity
  for (const name of known) {
    const slips = hasOtherEnd(word, name) ? MAX_SLIPS : slipsBetween(word, name)
    // Short words have many neighbours.
    if (slips < least && slips <= Math.min(MAX_SLIPS, Math.floor(name.length / 3)))
      [nearest, least] = [name, slips]
  }
  return nearest
}

const MAX_LENGTH = 64
const MAX_SLIPS = 2

/** `PROBE_INTERVAL` and `PROBE_INTERVAL_MS`, `rate_plan` and `rate_plan_id`. */
function hasOtherEnd(one: string, other: string): boolean {
  const [short, long] = one.length < other.length ? [one, other] : [other, one]
  return short.includes('_') && long.startsWith(`${short}_`)
}

/** Edit distance: inserted, deleted and replaced letters, and swapped neighbours (optimal string alignment). */
function slipsBetween(one: string, other: string): number {
  if (Math.abs(one.length - other.length) > MAX_SLIPS) return Infinity
  let before: number[] = []
  let row = Array.from({ length: other.length + 1 }, (_, index) => index)
  for (let i = 1; i <= one.length; i += 1) {
    const next = [i]
    for (let j = 1; j <= other.length; j += 1) {
      const isSame = one[i - 1] === other[j - 1]
      const isSwapped = one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1]
      next[j] = Math.min(
        (row[j] ?? Infinity) + 1,
        (next[j - 1] ?? Infinity) + 1,
        (row[j - 1] ?? Infinity) + (isSame ? 0 : 1),
        isSwapped ? (before[j - 2] ?? Infinity) + 1 : Infinity,
      )
    }
    before = row
    row = next
  }
  return row[other.length] ?? Infinity
}
