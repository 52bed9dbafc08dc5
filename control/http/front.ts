/** The steps before every route, and the answers to requests without a route. */
import type { Context, ErrorHandler, Handler, Hono, MiddlewareHandler, NotFoundHandler } from 'hono'
import { HTTPException } from 'hono/http-exception'
import { getPath } from 'hono/utils/url'
import type { Schedule } from '../../schema/clock.ts'
import type { MaybeLocal } from '../../schema/storage/store.ts'
import type { Log } from '../../schema/contracts/log.ts'
import { isLocked, isUnstored } from '../../schema/storage/storage.ts'
import { ApiError, storageUnavailable } from './api-error.ts'
import { refuseDeclaredLength } from './body.ts'
import { type ControlEnv, requestHeader, setAnswerHeader, type Step } from './control-env.ts'
import { errorBody } from './envelope.ts'

/** Steps that CORS preflights skip: they carry no credential. */
export const butPreflight =
  (...steps: readonly Step[]): Step =>
  (c) =>
    c.req.method === 'OPTIONS' ? undefined : run(steps, c)

/**
 * Runs the steps as one middleware: a middleware that awaits each of them costs 5 % of a request.
 */
export const inOrder =
  (...steps: readonly Step[]): MiddlewareHandler<ControlEnv> =>
  (c, next) => {
    const rest = run(steps, c)
    return rest === undefined ? next() : after(rest, next)
  }

async function after(rest: Promise<void>, next: () => Promise<void>): Promise<void> {
  await rest
  await next()
}

/** Waits only for steps that wait: most requests are known from memory. */
function run(steps: readonly Step[], c: Context<ControlEnv>): Promise<void> | undefined {
  for (let index = 0; index < steps.length; index += 1) {
    const waiting = steps[index]?.(c)
    if (waiting !== undefined) return waiting.then(() => run(steps.slice(index + 1), c))
  }
  return undefined
}

/** Visible ASCII that needs no quoting in logs, because others read what the client chose. */
const wellFormed = /^[\w.:/+=@-]{1,128}$/

/**
 * Echoes `X-Correlation-ID` or generates one. The response, the error envelope and the audit log
 * carry it.
 */
export function correlationId(randomBytes: (size: number) => Buffer): Step {
  const newId = correlationIds(randomBytes)
  return (c) => {
    const given = requestHeader(c, 'x-correlation-id')
    const id = given !== undefined && wellFormed.test(given) ? given : newId()
    c.set('correlationId', id)
    setAnswerHeader(c, 'X-Correlation-ID', id)
  }
}

/** A random start and a counter: unique without random bytes for each request. */
export function correlationIds(randomBytes: (size: number) => Buffer): () => string {
  const start = randomBytes(9).toString('base64url')
  let count = 0
  return () => `${start}-${(count += 1).toString(36)}`
}

const allowedHeaders =
  'Content-Type, Authorization, X-API-Key, X-Customer-ID, X-Correlation-ID, X-Tenant-Slug, ' +
  'Idempotency-Key, If-Match'

const exposedHeaders =
  'X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, RateLimit-Policy, RateLimit, ' +
  'Retry-After, Location, X-Correlation-ID, Idempotency-Replayed, X-Unreachable-Nodes, ' +
  'X-Change-Id, ETag'

/** A request without `Origin` does not come from a page and needs none of this. */
export function cors(): Step {
  return (c) => {
    if (requestHeader(c, 'origin') === undefined) return
    setAnswerHeader(c, 'Access-Control-Allow-Origin', '*')
    setAnswerHeader(c, 'Access-Control-Expose-Headers', exposedHeaders)
  }
}

/** Answers every `OPTIONS`. Runs after the rate limit, because the response carries its headers. */
export const preflight: Handler<ControlEnv> = (c) =>
  c.body(null, 204, {
    'Access-Control-Allow-Origin': '*',
    'Access-Control-Allow-Methods': 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS',
    'Access-Control-Allow-Headers': allowedHeaders,
    'Access-Control-Max-Age': '600',
  })

const headers = Object.entries({
  'X-Content-Type-Options': 'nosniff',
  // Responses are data. A route that serves a page sets its own policy.
  'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
  'Cache-Control': 'no-store',
})

/** Forbids browsers to cache, frame, sniff or run anything of this API. */
export function securityHeaders(): Step {
  return (c) => {
    for (const [name, value] of headers) setAnswerHeader(c, name, value)
  }
}

const harmless: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])

/**
 * The customer edge serves `/api/client/*` and `GET /health`. Everything else is 403, whether it
 * exists or not (SPECIFICATION.md §4.3), including CORS preflights. It checks the path as
 * requested: aliases are rejected.
 */
export function customerEdge(): Step {
  return (c) => {
    const path = getPath(c.req.raw)
    const isHealth = path === '/health' && harmless.has(c.req.method)
    if (!isHealth && !path.startsWith('/api/client/'))
      throw new ApiError(403, 'forbidden', 'This address serves only customers')
  }
}

/** Rejects a body with a too large `Content-Length` with 413; `readBody` counts one without. */
export function bodyLimit(): Step {
  return (c) => {
    refuseDeclaredLength(requestHeader(c, 'content-length'), c.req.path)
  }
}

const POLL_MS = 20
/** Then the request continues; a write is answered with 503. */
const MAX_POLLS = 100

/**
 * Waits while another process, such as `tollgate seed`, holds the write lock of an SQLite database.
 * The wait is asynchronous here; inside a handler it would stop every call. A database server has
 * no such lock.
 */
export function writeGate(store: MaybeLocal, schedule: Schedule): MiddlewareHandler<ControlEnv> {
  let unlocked: Promise<void> | undefined
  const whenUnlocked = (): Promise<void> =>
    new Promise((resolve) => {
      let polls = 0
      const poll = (): void => {
        polls += 1
        if (polls < MAX_POLLS && isWriteLocked(store)) schedule(poll, POLL_MS)
        else resolve()
      }
      schedule(poll, POLL_MS)
    })
  return async (c, next) => {
    // Charging writes in groups, which wait by themselves.
    if (c.req.path.startsWith('/api/ocs/')) return next()
    if (unlocked !== undefined || isWriteLocked(store)) {
      unlocked ??= whenUnlocked().finally(() => (unlocked = undefined))
      await unlocked
    }
    return next()
  }
}

function isWriteLocked({ sqlite }: MaybeLocal): boolean {
  try {
    sqlite?.exec('BEGIN IMMEDIATE; ROLLBACK')
    return false
  } catch (error) {
    return isLocked(error)
  }
}

/** Turns every error into the envelope of SPECIFICATION.md §2.7, without internal details. */
export function errorHandler(log: Log): ErrorHandler<ControlEnv> {
  return (error, c) => answer(c, asApiError(error, c, log))
}

/** 404 for a path without a route; 405, with `Allow`, for one that has other methods. */
export function notFoundHandler(app: Hono<ControlEnv>): NotFoundHandler<ControlEnv> {
  return (c) => {
    const allowed = methodsOf(app, c.req.path)
    if (allowed.length === 0)
      return answer(c, new ApiError(404, 'not_found', 'No route has this path'))
    return answer(c, methodNotAllowed(c.req.method, allowed))
  }
}

const methodNotAllowed = (method: string, allowed: readonly string[]): ApiError =>
  new ApiError(405, 'method_not_allowed', `This path does not support ${method}`, {
    headers: { Allow: allowed.join(', ') },
  })

/** Refuses all methods but these, at a path whose handler takes every method. */
export const onlyMethods = (
  ...served: readonly (typeof methods)[number][]
): MiddlewareHandler<ControlEnv> => {
  const allowed: readonly string[] = withImplied(served)
  return (c, next) => {
    if (!allowed.includes(c.req.method)) throw methodNotAllowed(c.req.method, allowed)
    return next()
  }
}

const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const

/** Counts only handlers of this method, not those mounted on every path. */
function methodsOf(app: Hono<ControlEnv>, path: string): string[] {
  const found = methods.filter((method) =>
    app.router
      .match(method, path)[0]
      .some(([[, route]]) => route.method === method && route.path !== '/*'),
  )
  return found.length === 0 ? [] : withImplied(found)
}

const withImplied = (found: readonly (typeof methods)[number][]): string[] => [
  ...found,
  ...(found.includes('GET') ? ['HEAD'] : []),
  'OPTIONS',
]

function asApiError(error: Error, c: Context<ControlEnv>, log: Log): ApiError {
  if (error instanceof ApiError) return error
  if (error instanceof HTTPException && error.status < 500)
    return new ApiError(400, 'bad_request', 'The request is invalid')
  if (isUnstored(error)) {
    log('warn', 'request refused: the database cannot be written', { path: c.req.path, error })
    return storageUnavailable()
  }
  log('error', 'request failed', {
    method: c.req.method,
    path: c.req.path,
    request_id: c.get('correlationId'),
    error: error.stack ?? error.message,
  })
  return new ApiError(500, 'internal_error', 'Internal error')
}

function answer(c: Context<ControlEnv>, error: ApiError): Response {
  c.set('refusal', { code: error.code, details: error.details })
  // Absent in an app without a server.
  const env: Partial<ControlEnv['Bindings']> | undefined = c.env
  if (env?.outgoing !== undefined) env.outgoing.refusal = error.code
  return c.json(errorBody(error, c.get('correlationId')), error.status, { ...error.headers })
}
