/**
 * Header names and the grammar that header values share: lists, parameters, quoted strings.
 * Everything here takes one pass over its text and answers a value for any input.
 */

/**
 * RFC 3261 §7.3.3 and the registry's later compact forms (RFC 3515, 3892, 3841, 4028, 4474, 6665).
 */
const compactForms: Readonly<Record<string, string>> = {
  a: 'Accept-Contact',
  b: 'Referred-By',
  c: 'Content-Type',
  d: 'Request-Disposition',
  e: 'Content-Encoding',
  f: 'From',
  i: 'Call-ID',
  j: 'Reject-Contact',
  k: 'Supported',
  l: 'Content-Length',
  m: 'Contact',
  n: 'Identity-Info',
  o: 'Event',
  r: 'Refer-To',
  s: 'Subject',
  t: 'To',
  u: 'Allow-Events',
  v: 'Via',
  x: 'Session-Expires',
  y: 'Identity',
}

const otherNames =
  'Accept Accept-Encoding Accept-Language Alert-Info Allow Answer-Mode Authentication-Info ' +
  'Authorization Call-Info Content-Disposition Content-ID Content-Language CSeq Date Diversion ' +
  'Error-Info Expires Feature-Caps Flow-Timer Geolocation History-Info In-Reply-To ' +
  'Info-Package Join ' +
  'Max-Breadth Max-Forwards MIME-Version Min-Expires Min-SE Organization P-Access-Network-Info ' +
  'P-Asserted-Identity P-Associated-URI P-Called-Party-ID P-Charging-Vector P-Early-Media ' +
  'P-Preferred-Identity P-Visited-Network-ID Path Priority Privacy Proxy-Authenticate ' +
  'Proxy-Authorization Proxy-Require RAck Reason Record-Route Recv-Info Remote-Party-ID Replaces ' +
  'Reply-To Require Retry-After Route RSeq Server Service-Route Session-ID SIP-ETag SIP-If-Match ' +
  'Subscription-State Suppress-If-Match Target-Dialog Timestamp Unsupported User-Agent Warning ' +
  'WWW-Authenticate'

const knownNames = [...otherNames.split(' '), ...Object.values(compactForms)]

/**
 * Spelling as usually seen on the wire → canonical name. Fixed size: unknown names are not added.
 */
const canonicalNames = new Map<string, string>([
  ...knownNames.map((name) => [name, name] as const),
  ...knownNames.map((name) => [name.toLowerCase(), name] as const),
  ...Object.entries(compactForms),
  ...Object.entries(compactForms).map(([form, name]) => [form.toUpperCase(), name] as const),
])

/** The long, usually seen spelling of a header name; `undefined` for a header not known here. */
export const knownName = (name: string): string | undefined =>
  canonicalNames.get(name) ?? canonicalNames.get(name.toLowerCase())

/** Length and first letter: few names share both. */
const shape = (length: number, firstLetter: number): number => length * 32 + (firstLetter & 31)

const namesByShape: string[][] = []
for (const name of knownNames)
  (namesByShape[shape(name.length, name.charCodeAt(0))] ??= []).push(name)

/**
 * `knownName` of a stretch of a text. A name in its usual spelling is compared where it stands:
 * cutting it out and looking it up costs 80 ns, this 20, and a call has a hundred of them.
 */
export function knownNameAt(text: string, start: number, end: number): string | undefined {
  const candidates = namesByShape[shape(end - start, text.charCodeAt(start))]
  if (candidates !== undefined)
    for (const name of candidates) if (text.startsWith(name, start)) return name
  return knownName(text.slice(start, end))
}

/**
 * How a name that is not known here leaves when an application wrote it in small letters alone, as
 * drachtio-srf does in responses: `P-Charge-Info`. One that begins with `x-` stays, as in
 * drachtio-server.
 */
export function capitalized(name: string): string {
  const first = name.charCodeAt(0)
  if (first < 0x61 || first > 0x7a || name.startsWith('x-') || name !== name.toLowerCase())
    return name
  return name.replace(/(?:^|-)[a-z]/g, (start) => start.toUpperCase())
}

/** A header out of a table of values, under whatever spelling its name stands there. */
export function headerNamed(
  headers: Readonly<Record<string, string | undefined>>,
  lowerCaseName: string,
): string | undefined {
  const value = headers[lowerCaseName]
  if (value !== undefined) return value
  const { length } = lowerCaseName
  for (const name in headers) {
    const found = headers[name]
    const isNamed = name.length === length && name.toLowerCase() === lowerCaseName
    if (isNamed && found !== undefined) return found
  }
  return undefined
}

const token = /^[\w.!%*+`'~-]+$/

/** RFC 3261 §25.1 `token`: methods, header names, option tags, parameter names. */
export const isToken = (text: string): boolean => token.test(text)

const backslash = 0x5c
const quote = 0x22
const lessThan = 0x3c
const greaterThan = 0x3e
const equals = 0x3d
const semicolon = 0x3b

export const isBlank = (code: number): boolean => code === 0x20 || code === 0x09

/** First position at or after `from` that is not a space or tab. */
export function skipBlanks(text: string, from: number): number {
  let at = from
  while (at < text.length && isBlank(text.charCodeAt(at))) at++
  return at
}

/**
 * Without surrounding spaces and tabs. Other white space is content in SIP, so this is not `trim`.
 */
export function trimBlanks(text: string): string {
  const start = skipBlanks(text, 0)
  let end = text.length
  while (end > start && isBlank(text.charCodeAt(end - 1))) end--
  return start === 0 && end === text.length ? text : text.slice(start, end)
}

/** Position after the quoted string that opens at `open`; -1 when it never closes. */
export function endOfQuoted(text: string, open: number): number {
  for (let at = open + 1; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === quote) return at + 1
    if (code === backslash) at++
  }
  return -1
}

/** Content of a quoted string given with its quotes, quoted pairs resolved. */
export function unquote(quoted: string): string {
  const inner = quoted.slice(1, -1)
  return inner.includes('\\') ? inner.replace(/\\([\s\S])/g, '$1') : inner
}

/**
 * Parts of a text at a separator that stands outside quoted strings and angle brackets, trimmed;
 * empty parts are kept. An unclosed quote or bracket reaches to the end.
 */
export function splitOutside(text: string, separator: ',' | ';'): string[] {
  const parts: string[] = []
  const wanted = separator.charCodeAt(0)
  let start = 0
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === wanted) {
      parts.push(trimBlanks(text.slice(start, at)))
      start = at + 1
    } else if (code === quote) {
      const end = endOfQuoted(text, at)
      at = end === -1 ? text.length : end - 1
    } else if (code === lessThan) {
      const end = text.indexOf('>', at)
      at = end === -1 ? text.length : end
    }
  }
  parts.push(trimBlanks(text.slice(start)))
  return parts
}

/** Elements of a comma list (RFC 3261 §7.3.1), trimmed, in order; empty elements are left out. */
export function splitList(value: string): readonly string[] {
  if (!value.includes(',')) {
    const only = trimBlanks(value)
    return only === '' ? [] : [only]
  }
  return splitOutside(value, ',').filter((part) => part !== '')
}

/**
 * Reads `;name[=value]…` from a position to the end. Names are lower case, quoted values resolved,
 * a parameter without value is ''. Empty parameters (`;;`) are only noted: whether they are
 * tolerable is the business of `checkRequest`. `undefined`: something else stands there, or a name
 * stands there twice.
 */
export function parseParams(text: string, from: number): Params | undefined {
  let at = skipBlanks(text, from)
  if (at === text.length) return noParams
  const params = new Params()
  while (at < text.length) {
    if (text.charCodeAt(at) !== semicolon) return undefined
    const start = skipBlanks(text, at + 1)
    const nameEnd = endOfWord(text, start)
    const name = text.slice(start, nameEnd)
    at = skipBlanks(text, nameEnd)
    let value = ''
    if (at < text.length && text.charCodeAt(at) === equals) {
      const open = skipBlanks(text, at + 1)
      const isQuoted = text.charCodeAt(open) === quote
      const end = isQuoted ? endOfQuoted(text, open) : endOfWord(text, open)
      if (end === -1 || name === '') return undefined
      value = isQuoted ? unquote(text.slice(open, end)) : text.slice(open, end)
      at = skipBlanks(text, end)
    }
    if (name === '') params.hasEmpty = true
    else if (!params.add(name.toLowerCase(), value)) return undefined
  }
  return params
}

/** A parameter name or unquoted value ends at a blank or a separator. */
function endOfWord(text: string, from: number): number {
  let at = from
  for (; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code <= 0x20 || code === semicolon || code === equals || code === quote) break
    if (code === lessThan || code === greaterThan || code === 0x2c) break
  }
  return at
}

/**
 * Parameters of a header or a URI, by their names in lower case. A list: nearly every value has one
 * or two, which a Map takes five times as much memory for.
 */
interface Param {
  readonly name: string
  readonly value: string
  next: Param | undefined
}

/**
 * Beyond, names are looked up in a set: a message of nothing but parameters must not take seconds.
 */
const MAX_LISTED = 16

export class Params {
  /** An empty one stood among them (`;;`), or at the end. */
  hasEmpty = false
  #size = 0
  #first: Param | undefined
  #last: Param | undefined
  #names: Set<string> | undefined

  get size(): number {
    return this.#size
  }

  /** False: the name stands there twice, and two readers could act on two different values. */
  add(name: string, value: string): boolean {
    if (this.has(name)) return false
    const param: Param = { name, value, next: undefined }
    if (this.#last === undefined) this.#first = param
    else this.#last.next = param
    this.#last = param
    this.#size += 1
    if (this.#size > MAX_LISTED) (this.#names ??= new Set(this.keys())).add(name)
    return true
  }

  /** '' of a parameter without value. */
  get(name: string): string | undefined {
    for (let param = this.#first; param; param = param.next)
      if (param.name === name) return param.value
    return undefined
  }

  has(name: string): boolean {
    return this.#names?.has(name) ?? this.get(name) !== undefined
  }

  *keys(): Generator<string> {
    for (const [name] of this) yield name
  }

  *[Symbol.iterator](): Generator<readonly [string, string]> {
    for (let param = this.#first; param; param = param.next) yield [param.name, param.value]
  }
}

/** Shared by all values that have none. */
export const noParams = new Params()
