/**
 * Rules that rewrite a telephone number, as carriers store them: the first rule whose `match` is
 * found replaces what it matched with `replace`. `match` is a small part of JavaScript's regular
 * expressions, chosen so that no rule can take long on any number.
 */
export interface NumberRule {
  readonly match: string
  /** `$1` to `$9` stand for the groups of `match`. */
  readonly replace: string
}

/** `in`: what the carrier sends; `out`: what it is sent. */
export interface NumberRules {
  readonly in: readonly NumberRule[]
  readonly out: readonly NumberRule[]
}

export const maxNumberRules = 32
export const maxRuleLength = 100

/** A rule reads at most this many characters of a number; longer ones are left as they are. */
const maxNumberLength = 64

/** Backtracking grows with the power of the open ones: two are 64² / 2 steps. */
const maxOpenQuantifiers = 2
/** `?`, `{n,m}` and `|` double the work at most; six of them are 64 ways. */
const maxChoices = 6

/** The start or end of a group, an alternative, or one character to be matched with its quantifier. */
const token =
  /(?<open>\((?:\?:)?)|(?<close>\))|(?<alternative>\|)|(?:\\[d+*#.^$?]|\[\^?(?:\\d|[0-9A-Za-z*#+_.-])+\]|[0-9A-Za-z#_@.-])(?<quantifier>[?*+]|\{\d{1,2}(?:,\d{0,2})?\})?/y

/** What is wrong with a rule, or undefined. `match` may hold groups, but neither nested nor repeated ones. */
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

/** How many capturing groups `match` has, or what is wrong with it. */
function readGroups(match: string): number | string {
  const start = match.startsWith('^') ? 1 : 0
  const end = match.endsWith('$') && !match.endsWith('\\$') ? match.length - 1 : match.length
  let groups = 0
  let isInGroup = false
  let openQuantifiers = 0
  let choices = 0
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
    if (isOpenEnded(quantifier)) openQuantifiers += 1
    else if (alternative !== undefined || isChoice(quantifier)) choices += 1
  }
  if (isInGroup) return 'match does not close its group'
  if (openQuantifiers > maxOpenQuantifiers)
    return `match has more than ${maxOpenQuantifiers} of * and +`
  if (choices > maxChoices) return `match has more than ${maxChoices} choices`
  return groups
}

const isOpenEnded = (quantifier: string | undefined): boolean =>
  quantifier === '*' || quantifier === '+' || quantifier?.includes(',') === true

const isChoice = (quantifier: string | undefined): boolean => quantifier === '?'

function isRegExp(source: string): boolean {
  try {
    return new RegExp(source) instanceof RegExp
  } catch {
    return false
  }
}

/** Rules as one function, for numbers of calls. Rules with a problem (`numberRuleProblem`) are left out. */
export function compileNumberRules(rules: readonly NumberRule[]): (number: string) => string {
  const compiled = rules
    .filter((rule) => numberRuleProblem(rule) === undefined)
    .map(({ match, replace }) => ({ pattern: new RegExp(match), replace }))
  return (number) => {
    if (number.length > maxNumberLength) return number
    const rule = compiled.find(({ pattern }) => pattern.test(number))
    return rule === undefined ? number : number.replace(rule.pattern, rule.replace)
  }
}
