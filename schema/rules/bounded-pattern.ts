/**
 * Patterns that people write, matched in time that grows only with the pattern and the text: a
 * subset of JavaScript's regular expressions with the same meaning. The matcher remembers which
 * step has failed at which character, and tries none of them twice. Pure.
 */

/** Characters of a pattern. */
export const maxPatternLength = 128

/** Characters of a text that a pattern is tried on; a longer one never matches. */
export const maxMatchedLength = 512

/** Steps of one pattern: a character, a class, a choice, the side of a group. */
const maxSteps = 512
/** Repetitions that may be counted, as in `{2,15}`. */
const maxCounted = 64
/** Groups inside of groups. */
const maxDepth = 4
const maxGroups = 9

export interface BoundedMatch {
  readonly start: number
  readonly end: number
  /** The match, then what each group holds; undefined: the group took no part. */
  readonly groups: readonly (string | undefined)[]
}

export interface BoundedPattern {
  /** How many groups it has. */
  readonly groups: number
  /** Steps of its program: with the length of the text the bound of its time. */
  readonly size: number
  /** The leftmost match. */
  readonly find: (text: string) => BoundedMatch | undefined
}

/** The pattern, or the problem of it in one clause. */
export function compilePattern(source: string): BoundedPattern | string {
  if (source === '') return 'pattern is empty'
  if (source.length > maxPatternLength)
    return `pattern has more than ${maxPatternLength} characters`
  try {
    const reader = new Reader(source)
    const tree = reader.whole()
    const program: Step[] = []
    emit({ kind: 'group', slot: 0, of: tree }, program)
    program.push({ kind: 'found' })
    const { groups } = reader
    return { groups, size: program.length, find: (text) => search(program, groups, text) }
  } catch (error) {
    if (error instanceof PatternProblem) return error.message
    throw error
  }
}

class PatternProblem extends Error {}

type Test = (code: number) => boolean

type Tree =
  | { readonly kind: 'one'; readonly test: Test }
  | { readonly kind: 'edge'; readonly at: 'start' | 'end' }
  | { readonly kind: 'sequence'; readonly parts: readonly Tree[] }
  | { readonly kind: 'choice'; readonly ways: readonly Tree[] }
  | { readonly kind: 'group'; readonly slot: number | undefined; readonly of: Tree }
  | {
      readonly kind: 'repeat'
      readonly of: Tree
      readonly least: number
      /** Infinity: without end. */
      readonly most: number
      readonly isLazy: boolean
    }

class Reader {
  readonly #source: string
  #at = 0
  #depth = 0
  groups = 0

  constructor(source: string) {
    this.#source = source
  }

  whole(): Tree {
    const tree = this.#choice()
    if (this.#at < this.#source.length) throw this.#problem('closes a group that is not open')
    return tree
  }

  #choice(): Tree {
    const ways = [this.#sequence()]
    while (this.#take('|')) ways.push(this.#sequence())
    const [only] = ways
    return only !== undefined && ways.length === 1 ? only : { kind: 'choice', ways }
  }

  #sequence(): Tree {
    const parts: Tree[] = []
    while (this.#at < this.#source.length && !'|)'.includes(this.#next)) parts.push(this.#item())
    if (parts.length === 0) throw this.#problem('has an alternative without characters')
    return { kind: 'sequence', parts }
  }

  #item(): Tree {
    const of = this.#atom()
    const counted = this.#quantifier()
    if (counted === undefined) return of
    if (of.kind === 'edge') throw this.#problem('repeats ^ or $')
    // So each repetition takes characters, and groups mean what they mean in JavaScript.
    if (of.kind === 'group' && !isSimple(of.of))
      throw this.#problem('repeats a group that has a group, a repetition, ^ or $ inside')
    return { kind: 'repeat', of, ...counted, isLazy: this.#take('?') }
  }

  #atom(): Tree {
    const character = this.#next
    this.#at += 1
    switch (character) {
      case '^':
        return { kind: 'edge', at: 'start' }
      case '$':
        return { kind: 'edge', at: 'end' }
      case '.':
        return { kind: 'one', test: (code) => !lineEnds.has(code) }
      case '[':
        return { kind: 'one', test: this.#class() }
      case '(':
        return this.#group()
      case '\\':
        return { kind: 'one', test: this.#escaped() }
      case '*':
      case '+':
      case '?':
      case '{':
        throw this.#problem(`has ${character} without a character before`)
      case ']':
      case '}':
        throw this.#problem(`has ${character} without a \\ before`)
      default:
        return { kind: 'one', test: same(character) }
    }
  }

  #group(): Tree {
    if (this.#depth === maxDepth) throw this.#problem(`has groups more than ${maxDepth} deep`)
    if (this.#next === '?' && this.#source[this.#at + 1] !== ':')
      throw this.#problem('looks ahead, looks behind, or names a group')
    const isCounted = !this.#take('?')
    if (!isCounted) this.#take(':')
    if (isCounted && this.groups === maxGroups)
      throw this.#problem(`has more than ${maxGroups} groups`)
    if (isCounted) this.groups += 1
    const slot = isCounted ? this.groups : undefined
    this.#depth += 1
    const of = this.#choice()
    this.#depth -= 1
    if (!this.#take(')')) throw this.#problem('does not close its group')
    return { kind: 'group', slot, of }
  }

  #quantifier(): { readonly least: number; readonly most: number } | undefined {
    if (this.#take('?')) return { least: 0, most: 1 }
    if (this.#take('*')) return { least: 0, most: Infinity }
    if (this.#take('+')) return { least: 1, most: Infinity }
    if (this.#next !== '{') return undefined
    const counted = /^\{(\d{1,2})(?:(,)(\d{0,2}))?\}/.exec(this.#source.slice(this.#at))
    if (counted === null) throw this.#problem('has { without a \\ before')
    this.#at += counted[0].length
    const least = Number(counted[1])
    const most = counted[2] === undefined ? least : Number(counted[3] || Infinity)
    if (least > maxCounted || (most !== Infinity && most > maxCounted))
      throw this.#problem(`repeats more than ${maxCounted} times`)
    if (most < least || most === 0)
      throw this.#problem('has a repetition that ends before it begins')
    return { least, most }
  }

  #escaped(): Test {
    const character = this.#next
    this.#at += 1
    const known = classes[character]
    if (known !== undefined) return known
    if (character === '' || /[0-9A-Za-z]/.test(character))
      throw this.#problem(`has \\${character}, which is not understood`)
    return same(character)
  }

  #class(): Test {
    const isOthers = this.#take('^')
    const tests: Test[] = []
    while (this.#next !== ']') {
      if (this.#at >= this.#source.length) throw this.#problem('does not close its [')
      tests.push(this.#member())
    }
    this.#at += 1
    if (tests.length === 0) throw this.#problem('has [ ] without a character')
    return (code) => tests.some((test) => test(code)) !== isOthers
  }

  #member(): Test {
    const first = this.#single()
    if (typeof first === 'function') return first
    if (this.#next !== '-' || this.#source[this.#at + 1] === ']') return same(first)
    this.#at += 1
    const last = this.#single()
    if (typeof last === 'function' || last === '' || last < first)
      throw this.#problem('has a range in [ ] that ends before it begins')
    const [low, high] = [first.charCodeAt(0), last.charCodeAt(0)]
    return (code) => code >= low && code <= high
  }

  #single(): string | Test {
    const character = this.#next
    this.#at += 1
    if (character !== '\\') return character
    const known = classes[this.#next]
    if (known === undefined && /[0-9A-Za-z]/.test(this.#next))
      throw this.#problem(`has \\${this.#next} in [ ], which is not understood`)
    const escaped = this.#next
    this.#at += 1
    return known ?? escaped
  }

  get #next(): string {
    return this.#source[this.#at] ?? ''
  }

  #take(character: string): boolean {
    if (this.#next !== character) return false
    this.#at += 1
    return true
  }

  #problem(what: string): PatternProblem {
    return new PatternProblem(`pattern ${what}, at position ${Math.max(this.#at, 1)}`)
  }
}

const lineEnds: ReadonlySet<number> = new Set([0x0a, 0x0d, 0x20_28, 0x20_29])

const same = (character: string): Test => {
  const wanted = character.charCodeAt(0)
  return (code) => code === wanted
}

const digit: Test = (code) => code >= 0x30 && code <= 0x39
const word: Test = (code) =>
  digit(code) || code === 0x5f || (code >= 0x61 && code <= 0x7a) || (code >= 0x41 && code <= 0x5a)
const blank: Test = (code) => /\s/.test(String.fromCharCode(code))

const classes: Readonly<Record<string, Test>> = {
  d: digit,
  D: (code) => !digit(code),
  w: word,
  W: (code) => !word(code),
  s: blank,
  S: (code) => !blank(code),
}

/** Whether a tree takes a character at least, and repeats nothing a varying number of times. */
function isSimple(tree: Tree): boolean {
  if (tree.kind === 'one') return true
  if (tree.kind === 'repeat') return tree.least === tree.most && isSimple(tree.of)
  if (tree.kind === 'sequence') return tree.parts.every(isSimple)
  return tree.kind === 'choice' && tree.ways.every(isSimple)
}

type Step =
  | { readonly kind: 'one'; readonly test: Test }
  | { readonly kind: 'edge'; readonly at: 'start' | 'end' }
  | { readonly kind: 'save'; readonly slot: number }
  /** Two ways on, the preferred one first. */
  | { kind: 'split'; first: number; second: number }
  | { kind: 'jump'; to: number }
  | { readonly kind: 'found' }

function emit(tree: Tree, program: Step[]): void {
  if (program.length > maxSteps)
    throw new PatternProblem('pattern is too large: count fewer repetitions')
  switch (tree.kind) {
    case 'one':
    case 'edge':
      return void program.push(tree)
    case 'sequence':
      for (const part of tree.parts) emit(part, program)
      return undefined
    case 'choice':
      return emitChoice(tree.ways, program)
    case 'group':
      if (tree.slot === undefined) return emit(tree.of, program)
      program.push({ kind: 'save', slot: tree.slot * 2 })
      emit(tree.of, program)
      return void program.push({ kind: 'save', slot: tree.slot * 2 + 1 })
    case 'repeat':
      return emitRepeat(tree, program)
  }
}

function emitChoice(ways: readonly Tree[], program: Step[]): void {
  const jumps: { kind: 'jump'; to: number }[] = []
  for (const [index, way] of ways.entries()) {
    const isLast = index === ways.length - 1
    const split = { kind: 'split' as const, first: program.length + 1, second: 0 }
    if (!isLast) program.push(split)
    emit(way, program)
    if (isLast) continue
    const jump = { kind: 'jump' as const, to: 0 }
    program.push(jump)
    jumps.push(jump)
    split.second = program.length
  }
  for (const jump of jumps) jump.to = program.length
}

function emitRepeat(
  { of, least, most, isLazy }: Extract<Tree, { readonly kind: 'repeat' }>,
  program: Step[],
): void {
  for (let count = 0; count < least; count += 1) emit(of, program)
  const splits: { kind: 'split'; first: number; second: number }[] = []
  const extra = most === Infinity ? 1 : most - least
  for (let count = 0; count < extra; count += 1) {
    const split = { kind: 'split' as const, first: 0, second: 0 }
    const at = program.push(split) - 1
    emit(of, program)
    if (most === Infinity) program.push({ kind: 'jump', to: at })
    splits.push(split)
    if (isLazy) split.second = at + 1
    else split.first = at + 1
  }
  for (const split of splits)
    if (isLazy) split.first = program.length
    else split.second = program.length
}

function search(program: readonly Step[], groups: number, text: string): BoundedMatch | undefined {
  if (text.length > maxMatchedLength) return undefined
  // A step that has failed at a character fails there again, whatever came before it.
  const tried = new Uint8Array(program.length * (text.length + 1))
  const saved = new Int16Array((groups + 1) * 2)
  for (let start = 0; start <= text.length; start += 1) {
    saved.fill(-1)
    if (!runFrom(program, text, start, tried, saved)) continue
    const found = Array.from({ length: groups + 1 }, (_, group) => {
      const [from = -1, to = -1] = saved.subarray(group * 2)
      return from < 0 || to < 0 ? undefined : text.slice(from, to)
    })
    return { start: saved[0] ?? 0, end: saved[1] ?? 0, groups: found }
  }
  return undefined
}

/**
 * `pending` holds pairs: a step and the character where the match goes on, or (below zero) a slot
 * and what it held before this way was tried. Objects would take four times as long.
 */
function runFrom(
  program: readonly Step[],
  text: string,
  start: number,
  tried: Uint8Array,
  saved: Int16Array,
): boolean {
  const width = text.length + 1
  const pending: number[] = [0, start]
  while (pending.length > 0) {
    let at = pending.pop() ?? 0
    let index = pending.pop() ?? 0
    if (index < 0) {
      saved[-1 - index] = at
      continue
    }
    for (;;) {
      const place = index * width + at
      if (tried[place] === 1) break
      tried[place] = 1
      const step = program[index]
      if (step === undefined) break
      if (step.kind === 'one') {
        if (at >= text.length || !step.test(text.charCodeAt(at))) break
        at += 1
        index += 1
      } else if (step.kind === 'split') {
        pending.push(step.second, at)
        index = step.first
      } else if (step.kind === 'jump') index = step.to
      else if (step.kind === 'save') {
        pending.push(-1 - step.slot, saved[step.slot] ?? -1)
        saved[step.slot] = at
        index += 1
      } else if (step.kind === 'found') return true
      else {
        if (at !== (step.at === 'start' ? 0 : text.length)) break
        index += 1
      }
    }
  }
  return false
}

/** Returns the problem of a replacement for a pattern with so many groups. */
export function replacementProblem(replacement: string, groups: number): string | undefined {
  if (replacement.length > maxPatternLength)
    return `replacement has more than ${maxPatternLength} characters`
  for (const [, group] of replacement.matchAll(/\$(\d)/g))
    if (Number(group) > groups)
      return `replacement refers to $${group}, the pattern has ${groups} groups`
  return undefined
}

/** The text with its first match replaced: `$0` is the match, `$1` to `$9` are its groups. */
export function replaceMatch(
  pattern: Pick<BoundedPattern, 'find'>,
  text: string,
  replacement: string,
): string {
  const found = pattern.find(text)
  if (found === undefined) return text
  const put = replacement.replace(
    /\$(\d)/g,
    (_, group: string) => found.groups[Number(group)] ?? '',
  )
  return text.slice(0, found.start) + put + text.slice(found.end)
}
