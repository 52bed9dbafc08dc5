/**
 * The bytes of a request body, read once and bounded; validation, signatures and idempotency share them. And JSON
 * from outside: malformed and too deeply nested documents are refused, and texts that cannot be stored.
 */
import type { Context } from 'hono'
import { ApiError, type ErrorDetail } from './api-error.ts'

/** A larger body is rejected with 413 (SPECIFICATION.md §8). */
export const MAX_BODY_BYTES = 1_048_576

/** The body of a login: a name, a password and the JSON around them. */
const MAX_LOGIN_BYTES = 4_096
/** Bodies of customers, and of their payment provider, whose events have a few kB. */
const MAX_CUSTOMER_BYTES = 16_384
const MAX_PAYMENT_EVENT_BYTES = 262_144

/** Paths with a limit of their own: a table of 100,000 rates has about 6 MiB. */
const limits: ReadonlyMap<string, number> = new Map([
  ['/api/v1/rates/import', 16_777_216],
  ['/api/v1/auth/login', MAX_LOGIN_BYTES],
  ['/api/v1/auth/session', MAX_LOGIN_BYTES],
  ['/api/client/auth/login', MAX_LOGIN_BYTES],
  ['/api/client/payments/webhook', MAX_PAYMENT_EVENT_BYTES],
])

const maxBytes = (path: string): number =>
  limits.get(path) ?? (path.startsWith('/api/client/') ? MAX_CUSTOMER_BYTES : MAX_BODY_BYTES)

const bodies = new WeakMap<Request, Promise<Buffer>>()

/** Returns the whole body, exactly as received. Throws 413 as soon as it exceeds the limit. */
export function readBody(c: Context): Promise<Buffer> {
  const request = c.req.raw
  const known = bodies.get(request)
  if (known !== undefined) return known
  const body = collect(request, c.req.path)
  bodies.set(request, body)
  return body
}

async function collect(request: Request, path: string): Promise<Buffer> {
  refuseDeclaredLength(request.headers.get('content-length'), path)
  if (request.body === null) return Buffer.alloc(0)
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of whole(request.body)) {
    length += chunk.byteLength
    if (length > maxBytes(path)) throw tooLarge(path)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks, length)
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

/** No resource nests deeper than five levels; recursion over stored JSON must not exhaust the stack. */
const MAX_DEPTH = 32

const tooDeep = `is nested deeper than ${MAX_DEPTH} levels`

/** Up to this depth a problem has a path. */
const MAX_PARSED_DEPTH = 4 * MAX_DEPTH

/** Whether a text opens so many brackets that it is not worth parsing. It need not be JSON. */
export function isDeep(text: string): boolean {
  let depth = 0
  let isInString = false
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at)
    if (isInString) {
      if (code === BACKSLASH) at += 1
      else if (code === QUOTE) isInString = false
    } else if (code === QUOTE) isInString = true
    else if (code === OPEN_BRACKET || code === OPEN_BRACE) {
      depth += 1
      if (depth > MAX_PARSED_DEPTH) return true
    } else if (code === CLOSE_BRACKET || code === CLOSE_BRACE) depth -= 1
  }
  return false
}

const QUOTE = 0x22
const BACKSLASH = 0x5c
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d

type ParseResult =
  | { readonly kind: 'value'; readonly value: unknown }
  | { readonly kind: 'problem'; readonly problem: ErrorDetail }

export const notJson = 'is not valid JSON'

export function parseJson(text: string): ParseResult {
  if (isDeep(text)) return { kind: 'problem', problem: { path: '', message: tooDeep } }
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return { kind: 'problem', problem: { path: '', message: notJson } }
  }
  const problem = findProblem(value, '', 0)
  return problem === undefined ? { kind: 'value', value } : { kind: 'problem', problem }
}

function findProblem(value: unknown, path: string, depth: number): ErrorDetail | undefined {
  if (typeof value === 'string') {
    const message = textProblem(value)
    return message === undefined ? undefined : { path, message }
  }
  if (typeof value !== 'object' || value === null) return undefined
  if (depth === MAX_DEPTH) return { path, message: tooDeep }
  for (const [key, member] of Object.entries(value)) {
    const memberPath = path === '' ? key : `${path}.${key}`
    const message = textProblem(key)
    if (message !== undefined) return { path: memberPath, message }
    const problem = findProblem(member, memberPath, depth + 1)
    if (problem !== undefined) return problem
  }
  return undefined
}

/**
 * SQLite and C string functions end a text at NUL, and UTF-8 encoding turns half a surrogate pair into
 * U+FFFD: two different texts could look the same.
 */
function textProblem(text: string): string | undefined {
  if (text.includes('\0')) return 'contains a NUL character'
  return /\p{Surrogate}/u.test(text) ? 'contains half a surrogate pair' : undefined
}
