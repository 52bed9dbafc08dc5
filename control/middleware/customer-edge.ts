import { getPath } from 'hono/utils/url'
import { ApiError } from '../http/api-error.ts'
import type { Step } from './in-order.ts'

const harmless: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])

/**
 * The public edge passes `/api/client/*` and `GET /health`; everything else is 403, whether it
 * exists or not (SPECIFICATION.md §4.3), a browser's question before its request included. It judges
 * the path as requested: no alias passes.
 */
export function customerEdge(): Step {
  return (c) => {
    const path = getPath(c.req.raw)
    const isHealth = path === '/health' && harmless.has(c.req.method)
    if (!isHealth && !path.startsWith('/api/client/'))
      throw new ApiError(403, 'forbidden', 'This address serves customers only')
  }
}
