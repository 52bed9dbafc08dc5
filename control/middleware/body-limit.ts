import type { MiddlewareHandler } from 'hono'
import { refuseDeclaredLength } from '../http/body.ts'
import type { ControlEnv } from '../http/control-env.ts'
import { requestHeader } from '../http/request-head.ts'

/** 413 for what announces itself as too large; a body without a length is counted by `readBody`. */
export function bodyLimit(): MiddlewareHandler<ControlEnv> {
  return (c, next) => {
    refuseDeclaredLength(requestHeader(c, 'content-length'), c.req.path)
    return next()
  }
}
