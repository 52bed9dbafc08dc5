/**
 * One path for every operation: the aliases of SPECIFICATION.md §4.2 and §9 are mapped to the versioned path
 * before routing, so that scopes, limits and audit see a single name.
 */
import { getPath } from 'hono/utils/url'

/** Exact paths that are not mapped … */
const unversioned: ReadonlySet<string> = new Set([
  '/',
  '/health',
  '/livez',
  '/readyz',
  '/metrics',
  '/openapi.json',
])
/** … and path prefixes that are not mapped. */
const pages: ReadonlySet<string> = new Set(['docs', 'console', 'mcp', 'decide'])

export function canonicalPath(request: Request): string {
  const path = getPath(request)
  if (path.startsWith('/api/v1/')) return customerPath(path, 7)
  if (path.startsWith('/api/client/') || path.startsWith('/api/ocs/')) return path
  if (path.startsWith('/api/')) return `/api/v1${path.slice(4)}`
  if (path.startsWith('/client/')) return `/api${path}`
  const end = path.indexOf('/', 1)
  const first = path.slice(1, end === -1 ? undefined : end)
  return unversioned.has(path) || pages.has(first) ? path : `/api/v1${path}`
}

/** §4.3 serves `/api/v1/client/…` and `/api/v1/ocs/…` at unversioned paths. */
function customerPath(path: string, start: number): string {
  if (path.startsWith('/client/', start) || path.startsWith('/ocs/', start))
    return `/api${path.slice(start)}`
  return path
}
