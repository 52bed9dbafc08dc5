/**
 * Rules by which a carrier's INVITEs get other headers and URIs, as they are written and stored:
 * what a rule may say, and the form in which calls use it. Pure.
 */
import { isToken, knownName } from '../sip/index.ts'
import {
  type BoundedPattern,
  compilePattern,
  maxPatternLength,
  replacementProblem,
} from './bounded-pattern.ts'

export const maxHeaderRules = 64
/** Characters of a value as it is written. */
const maxRuleValueLength = 256
/** Steps of all patterns of a carrier together: they bound what its rules cost a call. */
export const maxPatternSteps = 1_024
const maxNameLength = 64

export const ruleDirections = ['in', 'out'] as const
export const ruleActions = ['set', 'add', 'remove', 'copy', 'rewrite'] as const
export const ruleParts = [
  'value',
  'display_name',
  'user',
  'host',
  'uri_parameter',
  'parameter',
] as const

export type RuleDirection = (typeof ruleDirections)[number]
export type RulePart = (typeof ruleParts)[number]

export interface HeaderRule {
  /** `in`: an INVITE of the carrier, as it is read; `out`: one to it, before it is sent. */
  readonly direction: RuleDirection
  readonly do: (typeof ruleActions)[number]
  /** The header that is changed, or `Request-URI`. */
  readonly header: string
  readonly part: RulePart
  /** Name of the parameter, where the part is one. */
  readonly parameter?: string | undefined
  /** For `set` and `add`; with variables in braces. */
  readonly value?: string | undefined
  /** For `copy`: the header that has the part. */
  readonly source?: string | undefined
  /** For `rewrite`. */
  readonly pattern?: string | undefined
  readonly replacement?: string | undefined
}

/** A part of a value: a text as it stands, or a variable. */
export type TemplatePart = string | RuleVariable

export interface RuleVariable {
  readonly variable: VariableName
  /** The tag or the header that it names. */
  readonly of: string
}

export interface CompiledRule {
  /** Its place among all rules of the carrier, from 1. */
  readonly number: number
  readonly rule: HeaderRule
  /** `rule.header` in lower case. */
  readonly header: string
  readonly source: string
  readonly value: readonly TemplatePart[]
}

/** Rules of one carrier by direction; undefined: there are none of it. */
export type CompiledRules = Readonly<Record<RuleDirection, readonly CompiledRule[] | undefined>>

export interface RuleProblem {
  readonly path: keyof HeaderRule
  readonly message: string
}

/** The Request-URI among the names of headers. */
export const REQUEST_URI = 'request-uri'

/** Headers that hold a name and a URI. */
const addresses: ReadonlySet<string> = new Set([
  REQUEST_URI,
  'from',
  'to',
  'p-asserted-identity',
  'p-preferred-identity',
  'remote-party-id',
  'diversion',
])

export const isAddress = (header: string): boolean => addresses.has(header)

/** Every INVITE has them, once: only their parts are written. */
const single: ReadonlySet<string> = new Set([REQUEST_URI, 'from', 'to'])

/** They show a number to the carrier as the caller's. */
const showsNumber: ReadonlySet<string> = new Set([
  'from',
  'p-asserted-identity',
  'p-preferred-identity',
  'remote-party-id',
  'diversion',
  'history-info',
])

/**
 * Headers by which servers route, negotiate, authenticate, sign and frame messages: each leg has
 * its own.
 */
const reserved: ReadonlySet<string> = new Set(
  [
    'via route record-route path service-route contact call-id cseq max-forwards max-breadth',
    'identity identity-info date authorization proxy-authorization www-authenticate',
    'proxy-authenticate authentication-info require proxy-require supported unsupported allow',
    'accept accept-encoding accept-contact reject-contact request-disposition session-expires',
    'min-se event allow-events expires min-expires subscription-state refer-to refer-sub',
    'referred-by replaces join target-dialog rack rseq mime-version timestamp warning',
    'retry-after session-id sip-etag sip-if-match feature-caps flow-timer recv-info info-package',
    'x-call-uuid',
  ].flatMap((line) => line.split(' ')),
)
const reservedPrefixes = ['content-', 'x-tollgate-', 'security-']

/** Parameters by which a request finds its way, or a dialog its parties. */
const reservedParameters: ReadonlySet<string> = new Set(
  'transport maddr ttl lr method received rport ob tag branch gr'.split(' '),
)

const secretHeaders: ReadonlySet<string> = new Set(['authorization', 'proxy-authorization'])

const everywhere = ['call_uuid', 'caller', 'called', 'carrier', 'customer', 'rn', 'header'] as const
const variables = {
  in: [...everywhere, 'source'],
  out: [...everywhere, 'presented', 'tag'],
} as const

export type VariableName = (typeof variables)[RuleDirection][number]

/** With an argument after a dot: `{tag.NAME}`. */
const named: ReadonlySet<string> = new Set(['tag', 'header'])

const controlCharacter = /\p{Cc}|\p{Zl}|\p{Zp}/u

/** Why a rule may not be written; undefined: it may. */
export const headerRuleProblem = (rule: HeaderRule): RuleProblem | undefined =>
  targetProblem(rule) ?? contentProblem(rule) ?? numberProblem(rule)

function targetProblem({ direction, do: does, header: given, part, parameter }: HeaderRule) {
  const header = given.toLowerCase()
  const named = nameProblem(given)
  if (named !== undefined) return at('header', named)
  if (header === REQUEST_URI && direction === 'out' && (part === 'user' || part === 'host'))
    return at('part', 'an outgoing rule cannot write the called number or where the call goes')
  if (header === 'to' && direction === 'out' && part === 'user')
    return at('part', 'an outgoing rule cannot write the called number')
  if (part !== 'value' && !isAddress(header))
    return at('part', `${given} is no address: only its value can be written`)
  if (single.has(header) && part === 'value')
    return at('part', `is required: ${given} cannot be written whole, or removed`)
  if (header === REQUEST_URI && (part === 'display_name' || part === 'parameter'))
    return at('part', 'the Request-URI has a user, a host and URI parameters')
  if (does === 'remove' && (part === 'user' || part === 'host'))
    return at('part', 'a user or a host cannot be removed')
  if (does === 'add' && part !== 'value') return at('do', 'only a whole value can be added')
  const needsName = part === 'parameter' || part === 'uri_parameter'
  if (!needsName && parameter !== undefined) return at('parameter', `has no effect on ${part}`)
  if (!needsName) return undefined
  if (parameter === undefined) return at('parameter', 'is required: the name of the parameter')
  if (!isToken(parameter) || parameter.length > maxNameLength)
    return at('parameter', 'is no name of a parameter')
  return reservedParameters.has(parameter.toLowerCase())
    ? at('parameter', `${parameter} belongs to the SIP server`)
    : undefined
}

function nameProblem(given: string): string | undefined {
  const header = given.toLowerCase()
  if (!isToken(given) || !/^[A-Za-z]/.test(given) || given.length > maxNameLength)
    return 'is no name of a header'
  if (given.length === 1) return 'is a short form: write the name of the header'
  const isReserved =
    reserved.has(header) || reservedPrefixes.some((start) => header.startsWith(start))
  return isReserved ? `${given} belongs to the SIP server: a rule cannot write it` : undefined
}

const used = {
  set: ['value'],
  add: ['value'],
  remove: [],
  copy: ['source'],
  rewrite: ['pattern', 'replacement'],
} as const satisfies Record<HeaderRule['do'], readonly (keyof HeaderRule)[]>

function contentProblem(rule: HeaderRule): RuleProblem | undefined {
  const { do: does, part, value, source, pattern, replacement } = rule
  const fields: readonly (keyof HeaderRule)[] = used[does]
  for (const path of ['value', 'source', 'pattern', 'replacement'] as const)
    if (rule[path] !== undefined && !fields.includes(path))
      return at(path, `has no effect with "${does}"`)
  if (does === 'copy') {
    if (source === undefined) return at('source', 'is required: the header that has the part')
    return sourceProblem(source, rule)
  }
  if (does === 'rewrite') {
    if (pattern === undefined) return at('pattern', 'is required')
    if (pattern.length > maxPatternLength)
      return at('pattern', `has more than ${maxPatternLength} characters`)
    const compiled = compilePattern(pattern)
    if (typeof compiled === 'string') return at('pattern', compiled)
    if (controlCharacter.test(replacement ?? ''))
      return at('replacement', 'has a line break or a control character')
    const problem = replacementProblem(replacement ?? '', compiled.groups)
    return problem === undefined ? undefined : at('replacement', problem)
  }
  if (does === 'remove') return undefined
  const isFlag = (part === 'parameter' || part === 'uri_parameter') && (value ?? '') === ''
  if (isFlag) return undefined
  if (value === undefined || value === '') return at('value', 'is required')
  if (value.length > maxRuleValueLength)
    return at('value', `has more than ${maxRuleValueLength} characters`)
  if (controlCharacter.test(value)) return at('value', 'has a line break or a control character')
  const template = templateOf(value, rule.direction)
  return typeof template === 'string' ? at('value', template) : undefined
}

function sourceProblem(source: string, { part, header }: HeaderRule): RuleProblem | undefined {
  const from = source.toLowerCase()
  if (!isToken(source) || source.length > maxNameLength || source.length === 1)
    return at('source', 'is no name of a header')
  if (secretHeaders.has(from) || from.startsWith('x-tollgate-'))
    return at('source', `${source} is nobody’s business`)
  if (part !== 'value' && !isAddress(from))
    return at('source', `${source} is no address: only its value can be copied`)
  return from === header.toLowerCase() ? at('source', 'is the header itself') : undefined
}

/**
 * The number that a carrier is shown is decided before rules: they may write it in another form, or
 * one of their own, and never one that the caller has put into some header.
 */
function numberProblem(rule: HeaderRule): RuleProblem | undefined {
  const { direction, do: does, header, part, source, value = '' } = rule
  if (direction === 'in' || !showsNumber.has(header.toLowerCase())) return undefined
  if (part !== 'user' && part !== 'value') return undefined
  if (does === 'copy' && source !== undefined && !showsNumber.has(source.toLowerCase()))
    return at('source', `${source} may hold any number: the number shown is decided before`)
  const template = templateOf(value, direction)
  const foreign = (typeof template === 'string' ? [] : template).find(
    (each) => typeof each !== 'string' && each.variable !== 'presented',
  )
  return foreign === undefined
    ? undefined
    : at('value', 'may hold no variable but {presented}: the number shown is decided before')
}

const at = (path: keyof HeaderRule, message: string): RuleProblem => ({ path, message })

/** The parts of a value, or its problem. */
function templateOf(value: string, direction: RuleDirection): readonly TemplatePart[] | string {
  const parts: TemplatePart[] = []
  const known: readonly VariableName[] = variables[direction]
  for (const [piece] of value.matchAll(/\{[^{}]*\}|[^{}]+|[{}]/g)) {
    if (piece === '{' || piece === '}') return 'has a brace that is no part of a variable'
    if (!piece.startsWith('{')) {
      parts.push(piece)
      continue
    }
    const [name = '', ...rest] = piece.slice(1, -1).split('.')
    const of = rest.join('.')
    const variable = known.find((each) => each === name)
    if (variable === undefined || named.has(name) !== rest.length > 0)
      return `has the unknown variable ${piece}; known are ${shownVariables(direction)}`
    const header = of.toLowerCase()
    const isWrong =
      name === 'header' &&
      (!isToken(of) || secretHeaders.has(header) || header.startsWith('x-tollgate-'))
    if (isWrong) return `has the variable ${piece}, which names no header that can be used`
    parts.push({ variable, of: name === 'header' ? header : of })
  }
  return parts
}

const shownVariables = (direction: RuleDirection): string =>
  variables[direction].map((name) => (named.has(name) ? `{${name}.NAME}` : `{${name}}`)).join(' ')

/** The rules as calls use them, or why they cannot be used. */
export function compileHeaderRules(rules: readonly HeaderRule[]): CompiledRules | string {
  if (rules.length > maxHeaderRules) return `there are more than ${maxHeaderRules} header rules`
  const compiled: Record<RuleDirection, CompiledRule[]> = { in: [], out: [] }
  for (const [index, rule] of rules.entries()) {
    const problem = headerRuleProblem(rule)
    if (problem !== undefined) return `header rule ${index + 1}: ${problem.path} ${problem.message}`
    compiled[rule.direction].push(compiledRule(rule, index + 1))
  }
  const steps = patternSteps(rules)
  if (steps > maxPatternSteps) return `header rules have patterns of ${steps} steps`
  const { in: inward, out } = compiled
  return {
    in: inward.length === 0 ? undefined : inward,
    out: out.length === 0 ? undefined : out,
  }
}

function compiledRule(rule: HeaderRule, number: number): CompiledRule {
  const { header, source = '', value = '', direction } = rule
  const template = templateOf(value, direction)
  return {
    number,
    rule,
    header: header.toLowerCase(),
    source: source.toLowerCase(),
    value: typeof template === 'string' ? [] : template,
  }
}

/** Calls are plain values, and a pattern is none: it stands beside its rule. */
const patterns = new WeakMap<HeaderRule, BoundedPattern>()

/** The pattern of a rule that rewrites; undefined: it has none. */
export function patternOf({ rule }: CompiledRule): BoundedPattern | undefined {
  const known = patterns.get(rule)
  if (known !== undefined || rule.pattern === undefined) return known
  const compiled = compilePattern(rule.pattern)
  if (typeof compiled === 'string') return undefined
  patterns.set(rule, compiled)
  return compiled
}

/** Steps of all patterns together. */
export const patternSteps = (rules: readonly Pick<HeaderRule, 'pattern'>[]): number =>
  rules.reduce((sum, { pattern }) => {
    const compiled = pattern === undefined ? undefined : compilePattern(pattern)
    return sum + (compiled === undefined || typeof compiled === 'string' ? 0 : compiled.size)
  }, 0)

/** The name of a header as it is sent where the message has none of it yet. */
export const spelledHeader = (rule: HeaderRule): string =>
  knownName(rule.header)?.toLowerCase() ?? rule.header
