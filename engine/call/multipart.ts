/**
 * Bodies as call control sees them: the session description alone. Where a message has it beside
 * other parts (RFC 2046 §5.1, RFC 5621), the rest travels with the headers, and both are put
 * together again as the message leaves: byte for byte, but for the description. Pure.
 */
import type { Headers } from './signalling.ts'

/**
 * Holds what was around the description, as JSON. A name on the wire ends at its colon, so no peer
 * can send this one.
 */
export const PARTS = ':parts'

/** All parts of a body, nested ones included. */
const MAX_PARTS = 16
const MAX_DEPTH = 4
/** RFC 2046 §5.1.1. */
const MAX_BOUNDARY = 70

/** The rest of a body. */
interface Envelope {
  /** The Content-Type of the whole. */
  readonly type: string
  /** The text before and after the description. Without `after` there is no description in it. */
  readonly before: string
  readonly after?: string
  /** The line break after the description is that of the delimiter (RFC 2046 §5.1.1). */
  readonly isBare?: true
  /** The type of a part that is neither understood nor optional (RFC 5621 §3). */
  readonly required?: string
}

export interface Described {
  readonly headers: Headers
  /** Empty: nothing is described. */
  readonly body: string
}

/**
 * Whether a body is a description as it should be, or none: nearly every one is, and needs no
 * second look.
 */
export const isPlain = (body: string): boolean => body === '' || body.startsWith('v=0\r\n')

/** The methods whose messages carry offers and answers. */
export const describes = (method: string | undefined): boolean =>
  method === 'INVITE' || method === 'UPDATE' || method === 'ACK' || method === 'PRACK'

/**
 * The description of a message, and its headers with the rest. A body that cannot be read is left
 * as it is.
 */
export function described(headers: Headers, body: string): Described {
  if (isPlain(body)) return { headers, body }
  const type = headers['content-type'] ?? ''
  const name = typeOf(type)
  if (name === '' || name === SDP) return { headers, body: liberal(body) }
  if (headers['content-encoding'] !== undefined || isSealed(name)) return { headers, body }
  const found = isContainer(name) ? readParts(body, type) : { kind: 'none' as const, required: '' }
  if (found.kind === 'unreadable') return { headers, body }
  const { 'content-type': _type, ...others } = headers
  const isOptional = handlingOf(headers['content-disposition'] ?? '') === 'optional'
  if (found.kind === 'none') {
    const required = isContainer(name) || isOptional ? found.required : name
    const envelope = { type, before: body, ...(required !== '' && { required }) }
    return { headers: { ...others, [PARTS]: packed(envelope) }, body: '' }
  }
  const { sdp, ...around } = found.description
  const envelope = { type, ...around, ...(found.required !== '' && { required: found.required }) }
  return { headers: { ...others, 'content-type': SDP, [PARTS]: packed(envelope) }, body: sdp }
}

/** The message as it leaves, with its parts around the description that it has now. */
export function assembled(headers: Headers, body: string): Described {
  const parts = headers[PARTS]
  if (parts === undefined) return { headers, body }
  const { [PARTS]: _parts, 'content-type': _type, ...others } = headers
  const { type, before, after, isBare } = unpacked(parts)
  if (after === undefined) {
    if (body !== '') return { headers: others, body }
    return { headers: { ...others, 'content-type': type }, body: before }
  }
  // Headers that describe the body do not go without it.
  if (body === '') return { headers: others, body }
  const text = isBare === true ? body.replace(/\r?\n$/, '') : body
  return { headers: { ...others, 'content-type': type }, body: before + text + after }
}

/** The type of a part that must be understood, and is not (RFC 3261 §8.2.3). */
export const requiredType = (headers: Headers): string | undefined =>
  headers[PARTS] === undefined ? undefined : unpacked(headers[PARTS]).required

/** RFC 3261 §21.4.13: the answer to such a part, and what the bodies of a call may be. */
export const UNSUPPORTED = 'Unsupported Media Type'
export const ACCEPTED_TYPES = 'application/sdp, multipart/mixed'

const packed = (envelope: Envelope): string => JSON.stringify(envelope)

/** Reads what `packed` has written. */
function unpacked(parts: string): Envelope {
  const value: unknown = JSON.parse(parts)
  if (!isEnvelope(value)) throw new TypeError('these are no parts of a body')
  return value
}

const isEnvelope = (value: unknown): value is Envelope =>
  typeof value === 'object' && value !== null && 'type' in value && 'before' in value

const SDP = 'application/sdp'

/** Types that pass to the other side whole, with the headers that speak of them (RFC 6442). */
const passedTypes: ReadonlySet<string> = new Set([SDP, 'application/pidf+xml'])

const isContainer = (type: string): boolean => type.startsWith('multipart/')

/** RFC 1847: what is signed or encrypted is for its reader alone. */
const isSealed = (type: string): boolean => /^multipart\/(?:signed|encrypted)$/.test(type)

const typeOf = (value: string): string => (value.split(';', 1)[0] ?? '').trim().toLowerCase()

/** RFC 3261 §20.11; empty where it does not say. */
const handlingOf = (disposition: string): string =>
  /;\s*handling\s*=\s*"?([\w-]+)/i.exec(disposition)?.[1]?.toLowerCase() ?? ''

/** A description whose first line is not quite right: with blanks, or after empty lines. */
function liberal(body: string): string {
  const first = /^[\s\0\uFEFF]*v[ \t]*=[ \t]*0[ \t]*(\r?\n)/.exec(body)
  return first === null ? body : `v=0${first[1]}${body.slice(first[0].length)}`
}

// The parts of a body.

interface Part {
  /** The text from its delimiter to the next one. */
  readonly from: number
  readonly to: number
  readonly headers: string
  /** Where its headers begin. */
  readonly headersAt: number
  readonly contentAt: number
  readonly contentEnd: number
  readonly type: string
  /**
   * Nested parts that say the same in several ways (RFC 2046 §5.1.4): the outermost such container.
   */
  readonly alternative: Container | undefined
}

interface Container {
  readonly parts: Part[]
}

type Found =
  | { readonly kind: 'unreadable' }
  | { readonly kind: 'none'; readonly required: string }
  | {
      readonly kind: 'description'
      readonly required: string
      readonly description: Required<Pick<Envelope, 'before' | 'after'>> &
        Pick<Envelope, 'isBare'> & { readonly sdp: string }
    }

function readParts(body: string, type: string): Found {
  const leaves: Part[] = []
  const isRead = collect(body, 0, body.length, type, undefined, 1, leaves)
  if (!isRead) return { kind: 'unreadable' }
  const chosen = choose(leaves)
  const sdp = chosen && textOf(body, chosen)
  if (chosen !== undefined && sdp === undefined) return { kind: 'unreadable' }
  const kept = leaves.filter((part) => part === chosen || !fallsAway(part, chosen))
  const required = kept.find(isUnknown)?.type ?? ''
  if (chosen === undefined || sdp === undefined) return { kind: 'none', required }
  const isGone = (part: Part): boolean => !kept.includes(part)
  const gone = leaves.filter(isGone)
  const before = without(body, gone, 0, chosen.headersAt) + headersAsSent(body, chosen)
  const after = without(body, gone, chosen.contentEnd, body.length)
  const isBare = !sdp.endsWith('\n')
  const whole = isBare ? `${sdp}\r\n` : sdp
  const description = { sdp: whole, before, after, ...(isBare && { isBare: true as const }) }
  return { kind: 'description', required, description }
}

/** False: the body is not what its type says, or has too many parts. */
function collect(
  body: string,
  start: number,
  end: number,
  type: string,
  alternative: Container | undefined,
  depth: number,
  leaves: Part[],
): boolean {
  const boundary = boundaryOf(type)
  if (boundary === '' || boundary.length > MAX_BOUNDARY || depth > MAX_DEPTH) return false
  const delimiters = delimitersIn(body, start, end, `--${boundary}`)
  const group = alternative ?? (isAlternative(type) ? { parts: [] } : undefined)
  for (const [index, { at, next, isLast }] of delimiters.entries()) {
    if (isLast) break
    const following = delimiters[index + 1]
    const part = partAt(body, at, next, following?.at ?? end, following !== undefined, group)
    if (isContainer(part.type) && !isSealed(part.type)) {
      const { headers, contentAt, contentEnd } = part
      const nested = headerIn(headers, 'content-type')
      if (!collect(body, contentAt, contentEnd, nested, group, depth + 1, leaves)) return false
    } else {
      leaves.push(part)
      group?.parts.push(part)
    }
    if (leaves.length > MAX_PARTS) return false
  }
  return delimiters.some(({ isLast }) => !isLast)
}

const isAlternative = (type: string): boolean => typeOf(type) === 'multipart/alternative'

function boundaryOf(type: string): string {
  const [, quoted, token] = /;\s*boundary\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^;\s]+))/i.exec(type) ?? []
  return quoted?.replace(/\\(.)/g, '$1') ?? token ?? ''
}

interface Delimiter {
  readonly at: number
  /** Where the next line begins. */
  readonly next: number
  readonly isLast: boolean
}

/** RFC 2046 §5.1.1: a line of its own, which blanks may end. */
function delimitersIn(body: string, start: number, end: number, dashed: string): Delimiter[] {
  const found: Delimiter[] = []
  for (let at = body.indexOf(dashed, start); at !== -1 && at < end;) {
    const rest = at + dashed.length
    if (at === start || body[at - 1] === '\n') {
      lineEnd.lastIndex = rest
      const match = lineEnd.exec(body)
      if (match !== null && rest + match[0].length <= end) {
        const isLast = match[1] !== undefined
        found.push({ at, next: rest + match[0].length, isLast })
        if (isLast || found.length > MAX_PARTS) return found
      }
    }
    at = body.indexOf(dashed, rest)
  }
  return found
}

const lineEnd = /(--)?[ \t]*(?:\r?\n|$)/y

function partAt(
  body: string,
  from: number,
  headersAt: number,
  to: number,
  isDelimited: boolean,
  alternative: Container | undefined,
): Part {
  const text = body.slice(headersAt, to)
  const gap = /^\r?\n|\r?\n\r?\n/.exec(text)
  const headers = text.slice(0, gap?.index)
  const contentAt = headersAt + headers.length + (gap?.[0].length ?? 0)
  // The line break before a delimiter belongs to it.
  const lineBreak = isDelimited ? /\r?\n$/.exec(body.slice(contentAt, to)) : null
  const type = typeOf(headerIn(headers, 'content-type'))
  const contentEnd = to - (lineBreak?.[0].length ?? 0)
  return { from, to, headers, headersAt, contentAt, contentEnd, type, alternative }
}

/** Empty where there is none. Folded lines are one (RFC 5322 §2.2.3). */
function headerIn(headers: string, name: string): string {
  const pattern = headerPatterns[name]
  return (
    pattern
      ?.exec(headers)?.[1]
      ?.replace(/\r?\n[ \t]+/g, ' ')
      .trim() ?? ''
  )
}

/** Compact forms are none of MIME, and are read. */
const headerPatterns: Readonly<Record<string, RegExp>> = {
  'content-type': /^(?:content-type|c)[ \t]*:((?:[^\r\n]|\r?\n[ \t])*)/im,
  'content-disposition': /^content-disposition[ \t]*:((?:[^\r\n]|\r?\n[ \t])*)/im,
  'content-encoding': /^(?:content-encoding|e)[ \t]*:((?:[^\r\n]|\r?\n[ \t])*)/im,
  'content-transfer-encoding': /^content-transfer-encoding[ \t]*:((?:[^\r\n]|\r?\n[ \t])*)/im,
}

/**
 * The session description: the first, and of several that say the same the last (RFC 2046 §5.1.4).
 */
function choose(leaves: readonly Part[]): Part | undefined {
  const first = leaves.find(isSession)
  return first?.alternative ? first.alternative.parts.findLast(isSession) : first
}

const isSession = ({ type, headers }: Part): boolean =>
  type === SDP && /^(?:session\b|$)/i.test(headerIn(headers, 'content-disposition'))

/** Another description would lead past the relay, and so would another way to say the same. */
const fallsAway = (part: Part, chosen: Part | undefined): boolean =>
  chosen !== undefined &&
  (part.type === SDP || (part.alternative !== undefined && part.alternative === chosen.alternative))

const isUnknown = ({ type, headers }: Part): boolean =>
  !passedTypes.has(type) && handlingOf(headerIn(headers, 'content-disposition')) === 'required'

/** Undefined: its encoding is unknown, or it is no description. */
function textOf(body: string, { headers, contentAt, contentEnd }: Part): string | undefined {
  if (!/^(?:identity)?$/i.test(headerIn(headers, 'content-encoding'))) return undefined
  const content = body.slice(contentAt, contentEnd)
  const text = decoded(content, encodingOf(headers))
  const sdp = text && liberal(text)
  return sdp !== undefined && /^v=0\r?\n/.test(sdp) ? sdp : undefined
}

/** RFC 2045 §6. */
function decoded(content: string, encoding: string): string | undefined {
  if (plainEncodings.has(encoding)) return content
  if (encoding === 'base64') return Buffer.from(content, 'base64').toString('utf8')
  if (encoding !== 'quoted-printable') return undefined
  const text = content.replace(/=[ \t]*\r?\n/g, '')
  return text.replace(/=([\dA-F]{2})/gi, (_match, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 16)),
  )
}

const plainEncodings: ReadonlySet<string> = new Set(['', '7bit', '8bit', 'binary'])

/** The headers of the part with the empty line after them. What was decoded leaves as it is. */
function headersAsSent(body: string, { headers, headersAt, contentAt }: Part): string {
  const text = body.slice(headersAt, contentAt)
  const isCoded = !plainEncodings.has(encodingOf(headers))
  return isCoded ? text.replace(/^content-transfer-encoding[ \t]*:.*\r?\n/im, '') : text
}

const encodingOf = (headers: string): string =>
  headerIn(headers, 'content-transfer-encoding').toLowerCase()

/** The text from `start` to `end`, without the parts that fall away. */
function without(body: string, gone: readonly Part[], start: number, end: number): string {
  let text = ''
  let at = start
  for (const { from, to } of gone) {
    if (to <= start || from >= end) continue
    text += body.slice(at, Math.max(at, from))
    at = Math.max(at, to)
  }
  return text + body.slice(at, Math.max(at, end))
}
