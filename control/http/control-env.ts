/** What hono knows about a request of this API. */
import type { HttpBindings } from '@hono/node-server'
import type { Presented, Principal } from '../auth/principal.ts'

export interface ControlEnv {
  /** Absent in tests that use `app.request()`. */
  Bindings: Partial<HttpBindings>
  Variables: {
    /** Echoed or generated; `request_id` of the error envelope. */
    correlationId: string
    /** Address of the peer, without zone and IPv4 mapping. */
    clientAddress: string
    /** What the presented credential turned out to be; routes decide what they need of it. */
    presented: Presented
    /** Set once the route's `requires(…)` has let the request in. */
    principal: Principal
  }
}
