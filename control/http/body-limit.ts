import { refuseDeclaredLength } from './body.ts'
import { requestHeader } from './request-head.ts'
import type { Step } from './in-order.ts'

/** Rejects a body with a too large `Content-Length` with 413; `readBody` counts one without. */
export function bodyLimit(): Step {
  return (c) => {
    refuseDeclaredLength(requestHeader(c, 'content-length'), c.req.path)
  }
}
