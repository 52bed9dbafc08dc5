/** Offers names that resemble a wrong one. Give it only names that the caller may see. */
import { nearMiss } from './near-miss.ts'

const MAX_OFFERED = 3
/** Shorter texts are part of too many names. */
const MIN_PART = 3
/** As of every name; nothing longer is compared. */
const MAX_NAME = 300

/** ` Did you mean "acme-main"?`, or '' when no name is close. */
export function didYouMean(wrong: string, names: Iterable<string>): string {
  const close = closeNames(wrong, names).map((name) => JSON.stringify(name))
  return close.length === 0 ? '' : ` Did you mean ${close.join(' or ')}?`
}

/** The nearest misspelling, or else names of which it is a part, or that are a part of it. */
function closeNames(wrong: string, names: Iterable<string>): readonly string[] {
  const asked = plain(wrong)
  if (asked.length > MAX_NAME) return []
  const byPlain = new Map([...names].map((name) => [plain(name), name]))
  const same = byPlain.get(asked)
  if (same !== undefined) return [same]
  const misspelled = nearMiss(asked, byPlain.keys())
  const first = misspelled === undefined ? undefined : byPlain.get(misspelled)
  if (first !== undefined) return [first]
  if (asked.length < MIN_PART) return []
  return [...byPlain]
    .filter(([name]) => name.includes(asked) || (name.length >= MIN_PART && asked.includes(name)))
    .map(([, name]) => name)
    .toSorted((a, b) => a.length - b.length)
    .slice(0, MAX_OFFERED)
}

/** In one case, because a wrong case is the commonest slip, and without the parameters of a URI, which are often left out. */
const plain = (name: string): string => name.trim().toLowerCase().replace(/;.*/, '')
