import { getPath } from 'hono/utils/url'
import { ApiError } from './api-error.ts'
import type { Step } from './in-order.ts'

const harmless: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])

/**
 * The customer edge serves `/api/client/*` and `GET /health`. Everything else is 403, whether it exists or
 * not (SPECIFICATION.md §4.3), including CORS preflights. It checks the path as requested: aliases are
 * rejected.
 */
export function customerEdge(): Step {
  return (c) => {
    const path = getPath(c.req.raw)
    const isHealth = path === '/health' && harmless.has(c.req.method)
    if (!isHealth && !path.startsWith('/api/client/'))
      throw new ApiError(403, 'forbidden', 'This address serves only customers')
  }
}
