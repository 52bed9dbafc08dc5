/**
 * One path for every operation: the aliases of SPECIFICATION.md §4.2 and §9 are mapped to the
 * versioned path before routing, so that scopes, limits and audit see a single name.
 */
import type { Result, Router } from 'hono/router'
import { RegExpRouter } from 'hono/router/reg-exp-router'
import { SmartRouter } from 'hono/router/smart-router'
import { TrieRouter } from 'hono/router/trie-router'
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
const pages: ReadonlySet<string> = new Set(['docs', 'guide', 'console', 'mcp', 'decide'])

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

/**
 * A router that looks up paths without parameters in a table. Most requests are for one of those,
 * and Hono's router for ambiguous routes walks every pattern each time (1.5 µs, and garbage to
 * collect). Such a path is the same for every method: `GET /calls/originate` is 405, not a call
 * named `originate`.
 */
export class KnownPathsRouter<T> implements Router<T> {
  readonly name = 'KnownPathsRouter'
  /** Hono's default router. */
  readonly #patterns = new SmartRouter<T>({ routers: [new RegExpRouter(), new TrieRouter()] })
  /** Routes whose patterns have no parameters. */
  readonly #literal = new SmartRouter<T>({ routers: [new RegExpRouter(), new TrieRouter()] })
  /** The set has as many entries as the program has routes without parameters. */
  readonly #known = new Set<string>()
  /** The handlers are keyed by method, then by path. */
  readonly #results = new Map<string, Map<string, Result<T>>>()

  add(method: string, path: string, handler: T): void {
    if (!/[:*]/.test(path)) this.#known.add(path)
    if (!path.includes(':')) this.#literal.add(method, path, handler)
    this.#patterns.add(method, path, handler)
  }

  match(method: string, path: string): Result<T> {
    const found = this.#results.get(method)?.get(path)
    return found ?? this.#find(method, path)
  }

  #find(method: string, path: string): Result<T> {
    if (!this.#known.has(path)) return this.#patterns.match(method, path)
    const result = this.#literal.match(method, path)
    const ofMethod = this.#results.get(method) ?? new Map<string, Result<T>>()
    // Clients can invent methods; Node parses about thirty.
    if (ofMethod.size < this.#known.size) ofMethod.set(path, result)
    this.#results.set(method, ofMethod)
    return result
  }
}
