import { endOfQuoted, parseParams, skipBlanks, trimBlanks, unquote } from './headers.ts'
import type { Params } from './params.ts'
import { parseUri, type Uri } from './uri.ts'

/** From, To, Contact, Route, Refer-To, P-Asserted-Identity … (RFC 3261 §20.10). */
export class NameAddr {
  /** Without its quotes, quoted pairs resolved; '' when absent. */
  readonly displayName: string
  /** As sent, without angle brackets. Any scheme. */
  readonly uri: string
  /** Of the header, not of the URI. Names lower case. */
  readonly params: Params
  #parsed: Uri | undefined | null = null

  constructor(displayName: string, uri: string, params: Params) {
    this.displayName = displayName
    this.uri = uri
    this.params = params
  }

  /** Its parts, read when they are first asked for; `undefined` as from `parseUri`. */
  get parsedUri(): Uri | undefined {
    if (this.#parsed === null) this.#parsed = parseUri(this.uri)
    return this.#parsed
  }
}

/**
 * Reads one `name-addr` or `addr-spec` with its parameters. Without angle brackets everything from the
 * first `;` belongs to the header, and the URI may hold neither comma nor question mark (§20).
 */
export function parseNameAddr(value: string): NameAddr | undefined {
  const start = skipBlanks(value, 0)
  if (value.charCodeAt(start) === 0x22) {
    const end = endOfQuoted(value, start)
    if (end === -1) return undefined
    const open = skipBlanks(value, end)
    return bracketed(value, open, unquote(value.slice(start, end)))
  }
  const open = value.indexOf('<', start)
  if (open === -1) return bare(value, start)
  const displayName = trimBlanks(value.slice(start, open))
  return unquotedName.test(displayName) ? bracketed(value, open, displayName) : undefined
}

/**
 * The To of a response. Peers exist that add their tag to a To which has it already; the first is
 * the one that the dialog knows, and the response is told by its branch (RFC 3261 §17.1.3).
 */
export function parseAnsweredTo(value: string): NameAddr | undefined {
  const address = parseNameAddr(value)
  if (address !== undefined) return address
  const start = value.lastIndexOf('>') + 1
  const [first, second] = value.slice(start).matchAll(/;\s*tag\s*=[^;]*/gi)
  if (first === undefined || second === undefined) return undefined
  return parseNameAddr(value.slice(0, start + first.index + first[0].length))
}

/**
 * Preference of a contact in thousandths, 0 to 1000 (RFC 3261 §20.10 `q`). The highest where none is given,
 * or one that is no `qvalue`.
 */
export function qValueOf({ params }: Pick<NameAddr, 'params'>): number {
  const q = params.get('q') ?? ''
  return qvalue.test(q) ? Math.min(1_000, Math.round(Number(q) * 1_000)) : 1_000
}

const qvalue = /^[01](\.\d{0,3})?$/

/** The tag of a From or To, also of one that is no name-addr; '' when it has none. */
export const tagOf = (value: string | undefined): string =>
  /;\s*tag=([^;\s]+)/i.exec(value ?? '')?.[1] ?? ''

/** Wider than `*(token LWS)`: unquoted UTF-8 and brackets are common and do no harm. */
const unquotedName = /^[^",;:@<>\\]*$/
/** A scheme, and nothing that no URI holds unescaped (RFC 3986 §2): blanks, controls, quotes, brackets. */
const absoluteUri = /^[A-Za-z][\w+.-]*:[^\0-\x20\x7f"<>]+$/

function bracketed(value: string, open: number, displayName: string): NameAddr | undefined {
  if (value.charCodeAt(open) !== 0x3c) return undefined
  const close = value.indexOf('>', open)
  if (close === -1) return undefined
  return withParams(value, displayName, value.slice(open + 1, close), close + 1)
}

function bare(value: string, start: number): NameAddr | undefined {
  const semicolon = value.indexOf(';', start)
  const end = semicolon === -1 ? value.length : semicolon
  const uri = trimBlanks(value.slice(start, end))
  return uri.includes('?') || uri.includes(',') ? undefined : withParams(value, '', uri, end)
}

function withParams(
  value: string,
  displayName: string,
  uri: string,
  paramsAt: number,
): NameAddr | undefined {
  if (!absoluteUri.test(uri)) return undefined
  const params = parseParams(value, paramsAt)
  return params && new NameAddr(displayName, uri, params)
}
