/** Hono's types for requests of this API. */
import type { HttpBindings } from '@hono/node-server'
import type { ApiAnswer } from './api-answer.ts'
import type { ErrorDetail } from './api-error.ts'

export interface ControlEnv {
  /** Every request passes `http-server.ts`, which makes this response. */
  Bindings: Pick<HttpBindings, 'incoming'> & { readonly outgoing: ApiAnswer }
  /** Read with `c.get(name)` on the hot path: `c.var` copies the whole map on each use. */
  Variables: {
    /** Echoed or generated; `request_id` of the error envelope. */
    correlationId: string
    /** Of the peer, or as a trusted proxy reports it; IPv4-mapped addresses as IPv4. */
    clientAddress: string
    /** Set by a successful login, for the audit trail. */
    loginActor: string
    /** Set by the error handler, for the audit trail. */
    refusal: { readonly code: string; readonly details: readonly ErrorDetail[] | undefined }
    /** Set by routes that know what they changed, for the audit trail. */
    change: Change
    /** Set instead when another node has changed it: the digests of both. */
    changeDigests: ChangeDigests
    /** Set by routes that write their own audit entries, and for requests of other nodes, which write them. */
    isAudited: boolean
    /** Set when another node of the installation makes the request, for a client or for itself. */
    nodeRequest: NodeRequest
    /** Set when nodes that should have been asked have not answered. */
    isPartial: boolean
  }
}

/** A row before and after a request, as the API shows it; null when it did not exist. */
export interface Change {
  readonly before: unknown
  readonly after: unknown
  /** Of its entry in `control/changes`, which can be undone. */
  readonly changeId?: string | null
  readonly reason?: string | null
}

export interface ChangeDigests {
  readonly before: string | null
  readonly after: string | null
  /** Of its entry in `control/changes`. */
  readonly changeId: string | null
}

/** A request that another node of the installation makes. */
export interface NodeRequest {
  /** The node. */
  readonly from: string
  /** The client's address, as that node knows it. */
  readonly address: string
  /** Asked by the node itself; undefined: the request of a client. */
  readonly question: unknown
}
