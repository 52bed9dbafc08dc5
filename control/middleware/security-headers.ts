import { setAnswerHeader } from '../http/request-head.ts'
import type { Step } from './in-order.ts'

const headers = Object.entries({
  'X-Content-Type-Options': 'nosniff',
  // Answers are data. A route that serves a page sets its own policy over this one.
  'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
  'Cache-Control': 'no-store',
})

/** Nothing of this API is to be cached, framed, sniffed or run by a browser. */
export function securityHeaders(): Step {
  return (c) => {
    for (const [name, value] of headers) setAnswerHeader(c, name, value)
  }
}
