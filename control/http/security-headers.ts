import { setAnswerHeader } from './request-head.ts'
import type { Step } from './in-order.ts'

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
