/** Offers names that resemble a wrong one. Give it only names that the caller may see. */

const MAX_OFFERED = 3
/** Shorter texts are part of too many names. */
const MIN_PART = 3
/** Longer names are not compared. */
const MAX_NAME = 300

/** ` Did you mean "acme-main"?`, or '' when no name is close. */
export function didYouMean(wrong: string, names: Iterable<string>): string {
  const close = closeNames(wrong, names).map((name) => JSON.stringify(name))
  return close.length === 0 ? '' : ` Did you mean ${close.join(' or ')}?`
}

/** The nearest misspelling, or else names of which it is a part, or that are a part of it. */
function closeNames(wrong: string, names: Iterable<string>): readonly string[] {
  const name = plain(wrong)
  if (name.length > MAX_NAME) return []
  const byPlain = new Map([...names].map((name) => [plain(name), name]))
  const same = byPlain.get(name)
  if (same !== undefined) return [same]
  const misspelled = nearMiss(name, byPlain.keys())
  const first = misspelled === undefined ? undefined : byPlain.get(misspelled)
  if (first !== undefined) return [first]
  if (name.length < MIN_PART) return []
  return [...byPlain]
    .filter(([other]) => other.includes(name) || (other.length >= MIN_PART && name.includes(other)))
    .map(([, other]) => other)
    .toSorted((a, b) => a.length - b.length)
    .slice(0, MAX_OFFERED)
}

/**
 * The name in lower case, because a wrong case is the commonest mistake, and without the
 * parameters of a URI, which are often omitted.
 */
const plain = (name: string): string => name.trim().toLowerCase().replace(/;.*/, '')

/**
 * Returns the name of `known` that `word` misspells: at most two letters differ, or a part is
 * missing or added.
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

/**
 * Edit distance: inserted, deleted and replaced letters, and swapped neighbours (optimal string
 * alignment).
 */
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
