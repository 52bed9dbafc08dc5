/**
 * The bytes of a request body, read once and bounded; validation, signatures and idempotency share
 * them. And JSON from outside: malformed and too deeply nested documents are refused, and texts
 * that cannot be stored.
 */
import type { Context } from 'hono'
import { ApiError, type RequestProblem } from './api-error.ts'
import type { WorkBudget } from './work-budget.ts'

/** A larger body is rejected with 413 (SPECIFICATION.md §8). */
export const MAX_BODY_BYTES = 65_536

/** The body of a login: a name, a password and the JSON around them. */
const MAX_LOGIN_BYTES = 4_096
/** Bodies of customers, and of their payment provider, whose events have a few kB. */
const MAX_CUSTOMER_BYTES = 16_384
const MAX_PAYMENT_EVENT_BYTES = 262_144
/** A customer may have a thousand numbers, a tenant ten thousand. */
const MAX_NUMBERS_BYTES = 131_072
const MAX_TENANT_BYTES = 262_144

/** A deck of 500,000 lines has about 25 MB. */
const MAX_DECK_BYTES = 33_554_432

/** Paths with a limit of their own: a table of 100,000 rates has about 6 MiB. */
const limits: ReadonlyMap<string, number> = new Map([
  ['/api/v1/rates/import', 16_777_216],
  ['/api/v1/numbers/import', 16_777_216],
  ['/api/v1/auth/login', MAX_LOGIN_BYTES],
  ['/api/v1/auth/session', MAX_LOGIN_BYTES],
  ['/api/client/auth/login', MAX_LOGIN_BYTES],
  ['/api/client/payments/webhook', MAX_PAYMENT_EVENT_BYTES],
])

/** And everything below a path. */
const limitsBelow: readonly (readonly [start: string, bytes: number])[] = [
  ['/api/client/', MAX_CUSTOMER_BYTES],
  ['/api/v1/rates/decks', MAX_DECK_BYTES],
  ['/api/v1/customers', MAX_NUMBERS_BYTES],
  ['/api/v1/tenants', MAX_TENANT_BYTES],
]

export const maxBytes = (path: string): number =>
  limits.get(path) ?? limitsBelow.find(([start]) => path.startsWith(start))?.[1] ?? MAX_BODY_BYTES

const bodies = new WeakMap<Request, Promise<Buffer>>()

/** Returns the whole body, exactly as received. Throws 413 as soon as it exceeds the limit. */
export function readBody(c: Context): Promise<Buffer> {
  const request = c.req.raw
  const known = bodies.get(request)
  if (known !== undefined) return known
  const body = collect(request, c.req.path, budgetOf(c))
  bodies.set(request, body)
  return body
}

/** Absent in an app without a rate limit. */
const budgetOf = (c: Context): WorkBudget | undefined => c.get('budget') as WorkBudget | undefined

async function collect(
  request: Request,
  path: string,
  budget: WorkBudget | undefined,
): Promise<Buffer> {
  const declared = request.headers.get('content-length')
  refuseDeclaredLength(declared, path)
  if (request.body === null) return Buffer.alloc(0)
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of whole(request.body)) {
    length += chunk.byteLength
    if (declared === null) takeUndeclared(budget, chunk.byteLength)
    if (length > maxBytes(path)) throw tooLarge(path)
    chunks.push(chunk)
  }
  await budget?.turn()
  return Buffer.concat(chunks, length)
}

/** Counts the bytes of a body without a declared length; declared ones were counted before. */
function takeUndeclared(budget: WorkBudget | undefined, bytes: number): void {
  if (budget === undefined) return
  if (budget.waitMs() > 0) throw budget.refusal()
  budget.takeBytes(bytes)
}

/** A client that disconnects midway is not an error of this service. */
async function* whole(body: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield* body
  } catch {
    throw new ApiError(400, 'body_incomplete', 'The body ended before it was complete')
  }
}

/** Rejects an announced size before reading a byte. */
export function refuseDeclaredLength(contentLength: string | null | undefined, path: string): void {
  if (contentLength && Number(contentLength) > maxBytes(path)) throw tooLarge(path)
}

const tooLarge = (path: string): ApiError =>
  new ApiError(413, 'body_too_large', `The body exceeds ${maxBytes(path)} bytes`, {
    headers: { Connection: 'close' },
  })

/**
 * No resource nests deeper than five levels; recursion over stored JSON must not exhaust the stack.
 */
const MAX_DEPTH = 32

const tooDeep = `is nested deeper than ${MAX_DEPTH} levels`

/** Up to this depth a problem has a path. */
const MAX_PARSED_DEPTH = 4 * MAX_DEPTH
/** Names, and as many lists and objects: V8 takes milliseconds for thousands of them. */
const MAX_NAMES = 2_000

/** Why a text is not worth parsing; undefined: it is. It need not be JSON. */
export const excessOf = (text: string): string | undefined => excessIn(shapeOf(text), MAX_NAMES)

function excessIn({ depth, names, lists }: Shape, most: number): string | undefined {
  if (depth > MAX_PARSED_DEPTH) return tooDeep
  if (names > most) return `has more than ${most} names`
  return lists > most ? `has more than ${most} lists and objects` : undefined
}

interface Shape {
  /**
   * How many brackets are open at once, at most; it is not counted far beyond `MAX_PARSED_DEPTH`.
   */
  readonly depth: number
  readonly names: number
  readonly lists: number
}

function shapeOf(text: string): Shape {
  let depth = 0
  let deepest = 0
  let names = 0
  let lists = 0
  let isInString = false
  for (let at = 0; at < text.length && deepest <= MAX_PARSED_DEPTH; at += 1) {
    const code = text.charCodeAt(at)
    if (isInString) {
      if (code === BACKSLASH) at += 1
      else if (code === QUOTE) isInString = false
    } else if (code === QUOTE) isInString = true
    else if (code === COLON) names += 1
    else if (code === OPEN_BRACKET || code === OPEN_BRACE) {
      lists += 1
      depth += 1
      if (depth > deepest) deepest = depth
    } else if (code === CLOSE_BRACKET || code === CLOSE_BRACE) depth -= 1
  }
  return { depth: deepest, names, lists }
}

const COLON = 0x3a
const QUOTE = 0x22
const BACKSLASH = 0x5c
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d

type ParseResult =
  | { readonly kind: 'value'; readonly value: unknown }
  | { readonly kind: 'problem'; readonly problem: RequestProblem }

export const notJson = 'is not valid JSON'

/**
 * @param maxNames of members; a file of the operator, or an answer of an instance, may have any
 * number.
 */
export function parseJson(text: string, maxNames = MAX_NAMES): ParseResult {
  const shape = shapeOf(text)
  const excess = excessIn(shape, maxNames)
  if (excess !== undefined) return { kind: 'problem', problem: { path: '', message: excess } }
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return { kind: 'problem', problem: { path: '', message: notJson } }
  }
  // In valid UTF-8, only an escape makes a NUL or half a surrogate pair (RFC 8259 §7).
  if (shape.depth <= MAX_DEPTH && !text.includes('\\u')) return { kind: 'value', value }
  const problem = findProblem(value, 0)
  if (problem === undefined) return { kind: 'value', value }
  const { path, message } = problem
  return { kind: 'problem', problem: { path: path.toReversed().join('.'), message } }
}

interface FoundProblem {
  /** The innermost name first. */
  readonly path: string[]
  readonly message: string
}

/**
 * A path is put together for a problem alone: of all members it would take a hundred times as long.
 */
function findProblem(value: unknown, depth: number): FoundProblem | undefined {
  if (typeof value === 'string') {
    const message = textProblem(value)
    return message === undefined ? undefined : { path: [], message }
  }
  if (typeof value !== 'object' || value === null) return undefined
  if (depth === MAX_DEPTH) return { path: [], message: tooDeep }
  const members = value as Readonly<Record<string, unknown>>
  for (const key of Object.keys(members)) {
    const message = textProblem(key)
    if (message !== undefined) return { path: [key], message }
    const problem = findProblem(members[key], depth + 1)
    if (problem === undefined) continue
    problem.path.push(key)
    return problem
  }
  return undefined
}

/**
 * SQLite and C string functions end a text at NUL, and UTF-8 encoding turns half a surrogate pair
 * into U+FFFD: two different texts could look the same.
 */
function textProblem(text: string): string | undefined {
  if (!unstorable.test(text)) return undefined
  return text.includes('\0') ? 'contains a NUL character' : 'contains half a surrogate pair'
}

// eslint-disable-next-line no-control-regex -- it may not be stored
const unstorable = /[\0\p{Surrogate}]/u
