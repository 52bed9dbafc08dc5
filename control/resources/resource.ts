/**
 * A resource, as the REST routes (`resource-routes.ts`) and the seed file (`seed.ts`) write it. Its store
 * implements this interface; its schema validates every body.
 */
import type { z } from 'zod'
import type { RequestScope } from '../auth/tenants.ts'

export interface Slice {
  readonly limit: number
  readonly offset: number
  /** Part of the name; undefined matches all. */
  readonly search: string | undefined
}

export interface Rows<View> {
  readonly rows: readonly View[]
  /** The number of rows beyond this slice too. */
  readonly total: number
}

/**
 * Bodies are values validated by `body`. `document` returns a stored row as such a body, without secrets
 * and fields of creation, so that an update is the document with some fields replaced. Every rejection is
 * an `ApiError` whose details contain the path in the body.
 */
export interface Writable<Body extends z.ZodObject> {
  /** As in an error: `Carrier not found`. */
  readonly noun: string
  readonly body: Body
  /** Returns the id of the row that a body names: this makes a seed file repeatable. */
  identify(body: z.output<Body>): Promise<number | undefined>
  insert(body: z.output<Body>, scope: RequestScope, secretHash?: string): Promise<number>
  /** Replaces row `id` with `body`; absent secrets keep their values. */
  replace(id: number, body: z.output<Body>, scope: RequestScope, secretHash?: string): Promise<void>
}

/** A resource with routes. */
export interface Resource<Body extends z.ZodObject, View> extends Writable<Body> {
  /** Fields that an update cannot contain. */
  readonly onlyAtCreation?: readonly string[]
  list(scope: RequestScope, slice: Slice): Promise<Rows<View>>
  find(scope: RequestScope, id: number): Promise<View | undefined>
  document(scope: RequestScope, id: number): Promise<z.output<Body> | undefined>
  /** Whether a body contains a secret, shown by no response, that differs from the stored one. */
  isNewSecret?(id: number, body: z.output<Body>): Promise<boolean>
  /** Computes the slow hash of a body's password off the event loop; without it, the write computes it. */
  hashSecret?(body: z.output<Body>): Promise<string | undefined>
  /** URIs of a body whose names are looked up before the write, which must not wait. */
  destinations?(body: z.output<Body>): readonly string[]
  remove(id: number, scope: RequestScope): Promise<'removed' | 'absent'>
}
