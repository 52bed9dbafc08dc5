/** The envelope of SPECIFICATION.md §2.7: every response except the bare ones of §4.1 and §4.3. */
import type { Context } from 'hono'
import type { ErrorDetail } from './api-error.ts'

/** `limit` is the applied one, after clamping. */
export interface PageMeta {
  readonly page: number
  readonly limit: number
  readonly total: number
  /** Older entries exist; only a narrower query returns them. */
  readonly truncated?: true
}

export interface ErrorBody {
  readonly success: false
  readonly error: string
  readonly statusCode: number
  readonly code: string
  readonly details?: readonly ErrorDetail[]
  readonly request_id: string
}

/** `data`, or `never` for a promise, and for an object that has one: it would be written as `{}`. */
export type Settled<T> =
  T extends PromiseLike<unknown>
    ? never
    : T extends readonly unknown[]
      ? T
      : T extends object
        ? { readonly [name in keyof T]: T[name] extends PromiseLike<unknown> ? never : T[name] }
        : T

export const ok = <T>(c: Context, data: Settled<T>, meta?: PageMeta): Response =>
  c.json(meta === undefined ? { success: true, data } : { success: true, data, meta })

/** 201; `location` is the path of the created resource, relative to the server. */
export function created<T>(c: Context, location: string, data: Settled<T>): Response {
  c.header('Location', location)
  return c.json({ success: true, data }, 201)
}
