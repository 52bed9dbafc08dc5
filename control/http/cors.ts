/**
 * Cross-origin use from browsers (SPECIFICATION.md §5.6). A page of another origin must set the credential in a
 * header itself: the console's cookie does not count there (`auth/session-cookie.ts`), so any origin is allowed.
 */
import type { Handler } from 'hono'
import type { ControlEnv } from './control-env.ts'
import { requestHeader, setAnswerHeader } from './request-head.ts'
import type { Step } from './in-order.ts'

const allowedHeaders =
  'Content-Type, Authorization, X-API-Key, X-Customer-ID, X-Correlation-ID, X-Tenant-Slug, Idempotency-Key'

const exposedHeaders =
  'X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, RateLimit-Policy, RateLimit, ' +
  'Retry-After, Location, X-Correlation-ID, Idempotency-Replayed, X-Unreachable-Nodes, ' +
  'X-Change-Id'

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
