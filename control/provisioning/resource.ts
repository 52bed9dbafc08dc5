/**
 * A resource as both roads see it that write one: the REST routes (`resource-routes.ts`) and the
 * seed file (`seed.ts`). Its store implements this; the body is checked once, in one place.
 */
import type { z } from 'zod'
import type { GatewayLedTo } from '../../schema/rules/gateway-reach.ts'

/** Limits a request to the rows of its tenant and domain, and says who asks and when. */
export interface RequestScope {
  /** The only tenant whose rows exist; null: all tenants. */
  readonly tenantId: number | null
  /** The only SIP domain of that tenant, for what lives in one; absent or null: all its domains. */
  readonly domain?: string | null
  /** For the ledger and the audit: `key:<uuid>`, `user:<username>`, `seed`. */
  readonly actor: string
  /** Milliseconds UTC. */
  readonly now: number
  /** What DNS said of the destinations that are written; absent: it was not asked, as for a seed file. */
  readonly gatewayLedTo?: GatewayLedTo
}

export interface Slice {
  readonly limit: number
  readonly offset: number
  /** Part of the name; undefined: all. */
  readonly search: string | undefined
}

export interface Rows<View> {
  readonly rows: readonly View[]
  /** How many there are beyond this slice too. */
  readonly total: number
}

/**
 * Bodies are values that `body` has checked; `document` gives a stored row back as such a body (secrets
 * and what is only said once left out), so that a change is the document with some fields replaced.
 * Everything that is refused is an `ApiError` whose details hold the path inside the body.
 */
export interface Writable<Body extends z.ZodObject> {
  /** As read in an answer: `Carrier not found`. */
  readonly noun: string
  readonly body: Body
  /** The id of the row that a body names: what makes a seed file repeatable. */
  identify(body: z.output<Body>): number | undefined
  insert(body: z.output<Body>, scope: RequestScope, secretHash?: string): number
  /** Puts `body` in the place of what row `id` holds; absent secrets stay as they are. */
  replace(id: number, body: z.output<Body>, scope: RequestScope, secretHash?: string): void
}

/** What has routes of its own. */
export interface Resource<Body extends z.ZodObject, View> extends Writable<Body> {
  /** Fields of the body that a change cannot have. */
  readonly onlyAtCreation?: readonly string[]
  list(scope: RequestScope, slice: Slice): Rows<View>
  find(scope: RequestScope, id: number): View | undefined
  document(scope: RequestScope, id: number): z.output<Body> | undefined
  /** Whether a body holds a secret, which no answer shows, that differs from the stored one. */
  isNewSecret?(id: number, body: z.output<Body>): boolean
  /** The slow hash of a body's password, made off the event loop; without it the write makes it itself. */
  hashSecret?(body: z.output<Body>): Promise<string | undefined>
  /** URIs of a body whose names are looked up before it is written, as a write does not wait. */
  destinations?(body: z.output<Body>): readonly string[]
  remove(id: number, scope: RequestScope): 'removed' | 'absent'
}
