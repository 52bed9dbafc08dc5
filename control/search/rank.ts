/** Orders what was found: the name itself first, then names that begin so, then all others. */

export interface Ranked {
  readonly title: string
  /** The other texts that were searched. */
  readonly beside: readonly string[]
}

/** The lower, the better. */
export function rankOf({ title, beside }: Ranked, wanted: string): number {
  const text = folded(wanted)
  const name = folded(title)
  if (name === text) return rank.same
  const others = beside.map(folded)
  if (others.includes(text)) return rank.sameBeside
  if (name.startsWith(text)) return rank.begins
  if (hasWord(name, text)) return rank.word
  if (name.includes(text)) return rank.within
  if (others.some((other) => other.startsWith(text) || hasWord(other, text)))
    return rank.beginsBeside
  return rank.other
}

export const rank = {
  same: 0,
  sameBeside: 1,
  begins: 2,
  word: 3,
  within: 4,
  beginsBeside: 5,
  other: 6,
} as const

/** A plus in front of a number says nothing. */
const folded = (text: string): string =>
  text
    .normalize('NFC')
    .toLowerCase()
    .replace(/^\+(?=\d)/, '')
    .trim()

/** Whether a word that is not the first one begins so. */
const hasWord = (text: string, start: string): boolean =>
  text.split(/[^\p{L}\p{N}]+/u).some((word, index) => index > 0 && word.startsWith(start))

/** The best first; of the same rank, the shorter name, then by the alphabet. */
export function ranked<T extends Ranked>(found: readonly T[], wanted: string): readonly T[] {
  return found
    .map((hit) => ({ hit, rank: rankOf(hit, wanted) }))
    .toSorted(
      (one, other) =>
        one.rank - other.rank ||
        one.hit.title.length - other.hit.title.length ||
        (one.hit.title < other.hit.title ? -1 : one.hit.title > other.hit.title ? 1 : 0),
    )
    .map(({ hit }) => hit)
}
