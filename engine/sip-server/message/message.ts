import { canonicalName, knownName, splitList, trimBlanks } from './headers.ts'
import { type NameAddr, parseAnsweredTo, parseNameAddr } from './name-addr.ts'
import { type CSeq, parseCSeq, parseMaxForwards } from './simple-fields.ts'
import { parseVia, type Via } from './via.ts'

/** One header as a stretch of the message's text. A known name has its canonical spelling. */
export interface HeaderLine {
  readonly name: string
  readonly valueStart: number
  /** May lie after line breaks: then the value is folded. */
  valueEnd: number
  isFolded: boolean
}

/** RFC 3261 §7.1 and §7.2. `version` as sent; a request has status 0, a response uri ''. */
export interface StartLine {
  readonly kind: 'request' | 'response'
  readonly method: string
  readonly uri: string
  readonly version: string
  readonly status: number
  readonly reason: string
}

/** What `parse.ts` found out about a text in its one pass over the lines. */
export interface HeaderIndex {
  readonly lines: readonly HeaderLine[]
  /** Position of the first character of the body. */
  readonly bodyStart: number
  readonly hasPlainHeaders: boolean
}

/**
 * One SIP message. The text is the message; lines are indexed once, values are cut out when asked
 * for and the ones that every layer wants are kept. Absent and unreadable both read `undefined`
 * (or ''): `check.ts` is where the difference matters.
 */
export class SipMessage {
  readonly kind: 'request' | 'response'
  /** Of a response: the method of its CSeq, '' where that is unreadable. */
  readonly method: string
  readonly uri: string
  readonly version: string
  readonly status: number
  readonly reason: string
  readonly text: string
  readonly bodyStart: number
  /** No folded line and no compact name: the header part of `text` suits an application as it is. */
  readonly hasPlainHeaders: boolean
  readonly #lines: readonly HeaderLine[]
  #via: Via | undefined | null = null
  #cseq: CSeq | undefined | null = null
  #from: NameAddr | undefined | null = null
  #to: NameAddr | undefined | null = null
  #contact: NameAddr | undefined | null = null
  #callId: string | undefined

  constructor(text: string, start: StartLine, index: HeaderIndex) {
    this.text = text
    this.#lines = index.lines
    this.bodyStart = index.bodyStart
    this.hasPlainHeaders = index.hasPlainHeaders
    this.kind = start.kind
    this.uri = start.uri
    this.version = start.version
    this.status = start.status
    this.reason = start.reason
    this.method = start.kind === 'request' ? start.method : (this.cseq?.method ?? '')
  }

  get body(): string {
    return this.text.slice(this.bodyStart)
  }

  /** First value of a header, unfolded and trimmed. */
  get(name: string): string | undefined {
    for (const line of this.#lines) if (line.name === name) return this.#value(line)
    const wanted = canonicalName(name)
    const other = wanted === name ? this.#otherSpelling(wanted) : wanted
    return other === undefined ? undefined : this.get(other)
  }

  /** Where the first value of a header begins in the text; -1 without one. Canonical spelling only. */
  positionOf(name: string): number {
    for (const line of this.#lines) if (line.name === name) return line.valueStart
    return -1
  }

  /** Every line of a header, in order. */
  all(name: string): readonly string[] {
    const wanted = canonicalName(name)
    const values: string[] = []
    for (const line of this.#lines) if (this.#isNamed(line, wanted)) values.push(this.#value(line))
    return values
  }

  /** Every element of a comma-list header over all its lines, in order (RFC 3261 §7.3.1). */
  list(name: string): readonly string[] {
    const lines = this.all(name)
    return lines.length === 1 && lines[0] !== undefined
      ? splitList(lines[0])
      : lines.flatMap(splitList)
  }

  has(name: string): boolean {
    const wanted = canonicalName(name)
    for (const line of this.#lines) if (line.name === wanted) return true
    return this.#otherSpelling(wanted) !== undefined
  }

  /** All headers in order: known names canonical and long, unknown ones as sent; values unfolded. */
  entries(): readonly (readonly [string, string])[] {
    return this.#lines.map((line) => [line.name, this.#value(line)] as const)
  }

  /** Names of the headers in order, repeated as they are repeated. */
  names(): readonly string[] {
    return this.#lines.map((line) => line.name)
  }

  /** The topmost Via. */
  get via(): Via | undefined {
    if (this.#via === null) this.#via = parsed(this.#first('Via'), parseVia)
    return this.#via
  }

  get callId(): string {
    return (this.#callId ??= this.get('Call-ID') ?? '')
  }

  get cseq(): CSeq | undefined {
    if (this.#cseq === null) this.#cseq = parsed(this.get('CSeq'), parseCSeq)
    return this.#cseq
  }

  get from(): NameAddr | undefined {
    if (this.#from === null) this.#from = parsed(this.get('From'), parseNameAddr)
    return this.#from
  }

  get to(): NameAddr | undefined {
    if (this.#to === null)
      this.#to = parsed(this.get('To'), this.kind === 'response' ? parseAnsweredTo : parseNameAddr)
    return this.#to
  }

  /** The first Contact; `undefined` for `*`. */
  get contact(): NameAddr | undefined {
    if (this.#contact === null) this.#contact = parsed(this.#first('Contact'), parseNameAddr)
    return this.#contact
  }

  get fromTag(): string {
    return this.from?.params.get('tag') ?? ''
  }

  get toTag(): string {
    return this.to?.params.get('tag') ?? ''
  }

  get maxForwards(): number | undefined {
    return parsed(this.get('Max-Forwards'), parseMaxForwards)
  }

  #first(name: string): string | undefined {
    const value = this.get(name)
    return value?.includes(',') ? splitList(value)[0] : value
  }

  #value(line: HeaderLine): string {
    const raw = this.text.slice(line.valueStart, line.valueEnd)
    return line.isFolded ? unfold(raw) : raw
  }

  #isNamed(line: HeaderLine, wanted: string): boolean {
    if (line.name === wanted) return true
    return line.name.length === wanted.length && line.name.toLowerCase() === wanted.toLowerCase()
  }

  /** An unknown header keeps its spelling, and names are compared without case. */
  #otherSpelling(wanted: string): string | undefined {
    if (knownName(wanted) !== undefined) return undefined
    return this.#lines.find((line) => this.#isNamed(line, wanted))?.name
  }
}

const parsed = <T>(
  value: string | undefined,
  parse: (value: string) => T | undefined,
): T | undefined => (value === undefined ? undefined : parse(value))

/** RFC 3261 §7.3.1: a line break and the blanks around it read as one space. */
const unfold = (raw: string): string =>
  raw
    .split('\n')
    .map(trimLine)
    .filter((part) => part !== '')
    .join(' ')

const trimLine = (line: string): string =>
  trimBlanks(line.endsWith('\r') ? line.slice(0, -1) : line)
