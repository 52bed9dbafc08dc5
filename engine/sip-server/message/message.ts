import { knownName, splitList, trimBlanks } from './headers.ts'
import {
  type CSeq,
  type NameAddr,
  parseAnsweredTo,
  parseCSeq,
  parseMaxForwards,
  parseNameAddr,
  parseVia,
  type Via,
} from './fields.ts'
import { parseUri, type Uri } from './uri.ts'

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
  /** The headers in order. */
  readonly lines: readonly HeaderLine[]
  #via: Via | undefined | null = null
  #cseq: CSeq | undefined | null = null
  #from: NameAddr | undefined | null = null
  #to: NameAddr | undefined | null = null
  #contact: NameAddr | undefined | null = null
  #callId: string | undefined
  #requestUri: Uri | undefined | null = null

  constructor(text: string, start: StartLine, index: HeaderIndex) {
    this.text = text
    this.lines = index.lines
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

  get hasBody(): boolean {
    return this.bodyStart < this.text.length
  }

  /** First value of a header, unfolded and trimmed. */
  get(name: string): string | undefined {
    const line = this.#first(name)
    return line && this.#value(line)
  }

  has(name: string): boolean {
    return this.#first(name) !== undefined
  }

  /** Where the first value of a header begins in the text; -1 without one. Canonical spelling only. */
  positionOf(name: string): number {
    for (const line of this.lines) if (line.name === name) return line.valueStart
    return -1
  }

  /** Every line of a header, in order. */
  all(name: string): readonly string[] {
    const first = this.#first(name)
    if (first === undefined) return none
    const values: string[] = []
    for (const line of this.lines) if (isNamed(line, first.name)) values.push(this.#value(line))
    return values
  }

  /** Every element of a comma-list header over all its lines, in order (RFC 3261 §7.3.1). */
  list(name: string): readonly string[] {
    const values = this.all(name)
    return values.length === 1 && values[0] !== undefined
      ? splitList(values[0])
      : values.flatMap(splitList)
  }

  /** All headers in order: known names canonical and long, unknown ones as sent; values unfolded. */
  entries(): readonly (readonly [string, string])[] {
    return this.lines.map((line) => [line.name, this.#value(line)] as const)
  }

  /** The topmost Via. */
  get via(): Via | undefined {
    if (this.#via === null) this.#via = parsed(this.#firstElement('Via'), parseVia)
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
    if (this.#contact === null) this.#contact = parsed(this.#firstElement('Contact'), parseNameAddr)
    return this.#contact
  }

  /** The parts of the Request-URI. */
  get requestUri(): Uri | undefined {
    if (this.#requestUri === null) this.#requestUri = parseUri(this.uri)
    return this.#requestUri
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

  #firstElement(name: string): string | undefined {
    const value = this.get(name)
    return value?.includes(',') ? splitList(value)[0] : value
  }

  #value(line: HeaderLine): string {
    const raw = this.text.slice(line.valueStart, line.valueEnd)
    return line.isFolded ? unfold(raw) : raw
  }

  /** By whatever spelling of its name. */
  #first(name: string): HeaderLine | undefined {
    for (const line of this.lines) if (line.name === name) return line
    const wanted = knownName(name)
    // Lines have the canonical spelling of a name that is known; another one keeps that of its sender.
    if (wanted === name) return undefined
    return this.lines.find((line) => isNamed(line, wanted ?? name))
  }
}

const none: readonly string[] = []

/** Known names are never spelled otherwise. */
const isNamed = ({ name }: HeaderLine, wanted: string): boolean =>
  name === wanted ||
  (name.length === wanted.length &&
    knownName(wanted) === undefined &&
    name.toLowerCase() === wanted.toLowerCase())

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
