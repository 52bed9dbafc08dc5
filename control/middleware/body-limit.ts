import { refuseDeclaredLength } from '../http/body.ts'
import { requestHeader } from '../http/request-head.ts'
import type { Step } from './in-order.ts'

/** 413 for what announces itself as too large; a body without a length is counted by `readBody`. */
export function bodyLimit(): Step {
  return (c) => {
    refuseDeclaredLength(requestHeader(c, 'content-length'), c.req.path)
  }
}
