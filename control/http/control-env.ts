/** What hono knows about a request of this API. */
import type { HttpBindings } from '@hono/node-server'
import type { Presented, Principal } from '../auth/principal.ts'
import type { ErrorDetail } from './api-error.ts'

export interface ControlEnv {
  /** Without a socket (`app.request()` in tests) only `remoteAddress` can be given. */
  Bindings: Partial<HttpBindings> & { readonly remoteAddress?: string }
  /** Read by `c.get(name)` on the hot path: `c.var` copies the whole map on each use. */
  Variables: {
    /** Echoed or generated; `request_id` of the error envelope. */
    correlationId: string
    /** Of the peer, or what a trusted proxy says; IPv4-mapped ones as IPv4. */
    clientAddress: string
    /** What the presented credential turned out to be; routes decide what they need of it. */
    presented: Presented
    /** Set once the route's `requires(…)` has let the request in. */
    principal: Principal
    /** Set by a login that succeeded, for the audit trail. */
    loginActor: string
    /** Set by the error handler, for the audit trail. */
    refusal: { readonly code: string; readonly details: readonly ErrorDetail[] | undefined }
    /** Set by routes that know what they changed, for the audit trail. */
    change: Change
    /** Set by routes that write their own entries: the audit trail leaves them to it. */
    isAudited: boolean
  }
}

/** A row before and after a request, as the API shows it; null: it did not exist. */
export interface Change {
  readonly before: unknown
  readonly after: unknown
}
