/** The bytes of a request body, read once and bounded; validation, signatures and idempotency share them. */
import type { Context } from 'hono'
import { ApiError } from './api-error.ts'

/** A larger body is rejected with 413 (SPECIFICATION.md §8). */
export const MAX_BODY_BYTES = 1_048_576

/** What anyone may send: a name, a password and the JSON around them. */
const MAX_LOGIN_BYTES = 4_096
/** What customers send, and their payment provider: its events hold a few kB. */
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
