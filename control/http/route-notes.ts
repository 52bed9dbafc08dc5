/**
 * Notes of a route, kept with the middleware that enforces them: the scope it requires and the schemas it
 * validates. The OpenAPI document and the test that every route names its scope read these notes, so both
 * match what runs.
 */
import type { Hono } from 'hono'
import type { z } from 'zod'

export interface HandlerNote {
  /** Who is admitted. A route without it on any handler is a mistake. */
  readonly access?: Access
  readonly json?: z.ZodType
  readonly query?: z.ZodType
  readonly param?: z.ZodType
  /** Honours `Idempotency-Key`. */
  readonly isRepeatable?: true
}

export type Access =
  | { readonly kind: 'public' }
  /** Any valid credential, whatever its scopes. */
  | { readonly kind: 'authenticated' }
  | { readonly kind: 'customer' }
  | { readonly kind: 'scope'; readonly scope: string }

export interface RouteNote extends HandlerNote {
  readonly method: string
  readonly path: string
}

const notes = new WeakMap<object, HandlerNote>()

export function describeHandler(handler: object, note: HandlerNote): void {
  notes.set(handler, note)
}

/**
 * Returns every route of an app with the notes of all its handlers, without middleware mounted on every
 * path.
 */
export function routeNotes(app: Pick<Hono, 'routes'>): RouteNote[] {
  const routes = new Map<string, RouteNote>()
  for (const { method, path, handler } of app.routes) {
    if (method === 'ALL' || path === '/*') continue
    const name = `${method} ${path}`
    routes.set(name, { ...routes.get(name), ...notes.get(handler), method, path })
  }
  return [...routes.values()]
}
