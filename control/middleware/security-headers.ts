import type { MiddlewareHandler } from 'hono'
import type { ControlEnv } from '../http/control-env.ts'
import { setAnswerHeader } from '../http/request-head.ts'

const headers = Object.entries({
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  'Referrer-Policy': 'no-referrer',
  // Answers are data. A route that serves a page sets its own policy over this one.
  'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
  'Cache-Control': 'no-store',
})

/** Nothing of this API is to be cached, framed, sniffed or run by a browser. */
export function securityHeaders(): MiddlewareHandler<ControlEnv> {
  return (c, next) => {
    for (const [name, value] of headers) setAnswerHeader(c, name, value)
    return next()
  }
}
