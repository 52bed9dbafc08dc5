/**
 * Texts compared without regard to case, for all letters, the same in both databases: SQLite's
 * `lower` and its LIKE know ASCII only, and so does a server with the collation "C". So the letters
 * that a search has are made small one by one.
 */
import { type RawBuilder, sql } from 'kysely'

/** @param patternOf makes the pattern of LIKE … ESCAPE '\\' out of the text in small letters. */
export function matchesLike(
  column: RawBuilder<string>,
  text: string,
  patternOf: (text: string) => string,
): RawBuilder<boolean> {
  const folded = inSmallLetters(text)
  return sql<boolean>`${likeFolded(column, folded)} LIKE ${patternOf(folded)} ESCAPE '\\'`
}

/** The column with those letters small that the text has. */
function likeFolded(column: RawBuilder<string>, folded: string): RawBuilder<string> {
  let small = hasLetter.test(folded) ? sql<string>`lower(${column})` : column
  for (const letter of new Set(folded))
    for (const variant of variantsOf(letter))
      small = sql<string>`replace(${small}, ${variant}, ${letter})`
  return small
}

const hasLetter = /[a-z]/

const inSmallLetters = (text: string): string => Array.from(text.normalize('NFC'), small).join('')

/** One character for one: the dotted capital I would become two. */
function small(character: string): string {
  if (character === 'ς') return 'σ'
  const lower = character.toLowerCase()
  return /^.$/su.test(lower) ? lower : character
}

let variants: ReadonlyMap<string, readonly string[]> | undefined

/** The other characters that are this one in small letters; `lower` sees to ASCII. */
function variantsOf(letter: string): readonly string[] {
  if (letter <= '\u007f') return []
  variants ??= allVariants()
  return variants.get(letter) ?? []
}

/**
 * About 1,400 letters, found in some milliseconds when the first text that is not ASCII is
 * searched.
 */
function allVariants(): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, string[]>()
  for (let code = 0x80; code <= LAST_CASED; code += 1) {
    const character = String.fromCodePoint(code)
    const letter = small(character)
    if (letter === character || letter <= '\u007f') continue
    const known = found.get(letter)
    if (known === undefined) found.set(letter, [character])
    else known.push(character)
  }
  return found
}

/** No letter behind it has two cases (Unicode 17). */
const LAST_CASED = 0x1e943
