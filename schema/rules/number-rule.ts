/**
 * Rules that rewrite a telephone number, as carriers store them: the first matching rule replaces its match
 * with `replace`. `match` is a small subset of JavaScript's regular expressions, chosen so that no rule
 * takes longer than a millisecond on any number.
 */
export interface NumberRule {
  readonly match: string
  /** `$1` to `$9` refer to the groups of `match`. */
  readonly replace: string
}

export const maxNumberRules = 32
export const maxRuleLength = 100

/** Maximum characters of a number that a rule matches; longer numbers stay unchanged. */
const maxNumberLength = 64

/**
 * Maximum number of paths by which a matcher may try a rule on the longest number. Each takes some
 * nanoseconds; tests check that the slowest rules stay below a millisecond.
 */
const maxWays = 50_000

/** The start or end of a group, an alternative, or one character with its quantifier. */
const token =
  /(?<open>\((?:\?:)?)|(?<close>\))|(?<alternative>\|)|(?:\\[d+*#.^$?]|\[\^?(?:\\d|[0-9A-Za-z*#+_.-])+\]|[0-9A-Za-z#_@.-])(?<quantifier>[?*+]|\{\d{1,2}(?:,\d{0,2})?\})?/y

/** Returns the problem of a rule, or undefined. `match` may contain groups, but no nested or repeated ones. */
export function numberRuleProblem({ match, replace }: NumberRule): string | undefined {
  if (match === '') return 'match is empty'
  if (match.length > maxRuleLength || replace.length > maxRuleLength)
    return `match and replace have at most ${maxRuleLength} characters`
  const groups = readGroups(match)
  if (typeof groups === 'string') return groups
  if (!/^(?:[0-9A-Za-z*#+_.@-]|\$[1-9])*$/.test(replace))
    return 'replace may hold number characters and $1 to $9 only'
  for (const [, group] of replace.matchAll(/\$([1-9])/g))
    if (Number(group) > groups) return `replace refers to $${group}, match has ${groups} groups`
  return isRegExp(match) ? undefined : 'match is not a regular expression'
}

/** Returns the number of capturing groups of `match`, or its problem. */
function readGroups(match: string): number | string {
  const start = match.startsWith('^') ? 1 : 0
  const end = match.endsWith('$') && !match.endsWith('\\$') ? match.length - 1 : match.length
  const effort = new Effort(start === 1)
  let groups = 0
  let isInGroup = false
  token.lastIndex = start
  while (token.lastIndex < end) {
    const position = token.lastIndex
    const found = token.exec(match)
    if (found === null) return `match is not understood at position ${position + 1}`
    const { open, close, alternative, quantifier } = found.groups ?? {}
    if (open !== undefined && isInGroup) return 'match has a group inside a group'
    if (close !== undefined && !isInGroup) return 'match closes a group that is not open'
    if (open !== undefined) isInGroup = true
    if (close !== undefined) isInGroup = false
    if (open === '(') groups += 1
    if (alternative !== undefined) effort.addAlternative(isInGroup)
    else effort.addQuantifier(quantifier)
  }
  if (isInGroup) return 'match does not close its group'
  return effort.ways > maxWays ? 'match may take too long: use fewer of *, +, ? and |' : groups
}

/** Counts the paths by which a backtracking matcher may try a rule. */
class Effort {
  /** Positions that may match anywhere in the number, but only in this order. */
  #wandering: number
  #choices = 1

  constructor(isAnchored: boolean) {
    this.#wandering = isAnchored ? 0 : 1
  }

  /** The number of ways to place the ordered positions: a binomial coefficient. */
  get ways(): number {
    let ways = this.#choices
    for (let place = 1; place <= this.#wandering; place += 1)
      ways *= (maxNumberLength + place) / place
    return ways
  }

  addQuantifier(quantifier: string | undefined): void {
    if (quantifier === undefined) return
    const [, least = '', comma = '', most = ''] = /^\{(\d+)(,?)(\d*)\}$/.exec(quantifier) ?? []
    if (quantifier === '?') this.#choices *= 2
    else if (comma !== '' && most !== '') this.#choices *= Math.max(1, +most - +least + 1)
    else if (comma !== '' || quantifier === '*' || quantifier === '+') this.#wandering += 1
  }

  /** Outside groups, `^` belongs to the first alternative only. */
  addAlternative(isInGroup: boolean): void {
    this.#choices *= 2
    if (!isInGroup && this.#wandering === 0) this.#wandering = 1
  }
}

function isRegExp(source: string): boolean {
  try {
    return new RegExp(source) instanceof RegExp
  } catch {
    return false
  }
}

/** What becomes of a number without rules. */
export const unchanged = (number: string): string => number

/**
 * Returns the rules as one function on numbers: `unchanged` if there are none. Rules with a problem
 * (`numberRuleProblem`) are skipped.
 */
export function compileNumberRules(rules: readonly NumberRule[]): (number: string) => string {
  const compiled = rules
    .filter((rule) => numberRuleProblem(rule) === undefined)
    .map(({ match, replace }) => ({ pattern: warmedUp(new RegExp(match)), replace }))
  if (compiled.length === 0) return unchanged
  return (number) => {
    if (number.length > maxNumberLength) return number
    for (const { pattern, replace } of compiled) {
      const found = pattern.exec(number)
      if (found) return rewritten(number, found, replace)
    }
    return number
  }
}

/** V8 interprets a pattern on its first use, ten times slower than later. */
function warmedUp(pattern: RegExp): RegExp {
  pattern.test('0')
  pattern.test('0')
  return pattern
}

function rewritten(number: string, found: RegExpExecArray, replace: string): string {
  const put = replace.replace(/\$([1-9])/g, (_, group: string) => found[Number(group)] ?? '')
  return number.slice(0, found.index) + put + number.slice(found.index + found[0].length)
}
