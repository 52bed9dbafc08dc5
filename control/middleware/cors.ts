/**
 * Cross-origin use from browsers (specification §5.6). Credentials travel in headers that a page
 * must set itself, never in cookies, so that any origin may be allowed.
 */
import type { Handler, MiddlewareHandler } from 'hono'
import type { ControlEnv } from '../http/control-env.ts'
import { requestHeader, setAnswerHeader } from '../http/request-head.ts'

const allowedHeaders = [
  ...['Content-Type', 'Authorization', 'X-API-Key', 'X-Customer-ID', 'X-Correlation-ID'],
  ...['X-Tenant-Slug', 'Idempotency-Key'],
].join(', ')

const exposedHeaders = [
  ...['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset', 'RateLimit-Policy'],
  ...['RateLimit', 'Retry-After', 'Location', 'X-Correlation-ID', 'Idempotency-Replayed'],
].join(', ')

export function cors(): MiddlewareHandler<ControlEnv> {
  return (c, next) => {
    setAnswerHeader(c, 'Access-Control-Allow-Origin', '*')
    if (requestHeader(c, 'origin') !== undefined)
      setAnswerHeader(c, 'Access-Control-Expose-Headers', exposedHeaders)
    return next()
  }
}

/** The answer to every `OPTIONS`; it stands behind the rate limit, whose headers it carries. */
export const preflight: Handler<ControlEnv> = (c) =>
  c.body(null, 204, {
    'Access-Control-Allow-Methods': 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS',
    'Access-Control-Allow-Headers': allowedHeaders,
    'Access-Control-Max-Age': '600',
  })
