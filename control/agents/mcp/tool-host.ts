/** What an MCP server calls: the toolbox of this process, or the API of a running process. */
import type { ToolListing } from '../tool.ts'
import type { ToolAnswer } from '../tool.ts'

/** What one client has subscribed to. */
export interface ResourceSubscriptions {
  /** Rejects with a `ProtocolError`. */
  readonly subscribe: (uri: string) => Promise<void>
  readonly unsubscribe: (uri: string) => Promise<void>
}

export interface ToolHost {
  readonly version: string
  /** Of the client's requests, where none is negotiated for a connection. */
  readonly protocolVersion?: string | undefined
  /** Whether a client is told when a resource changes to which it has subscribed. */
  readonly notifies?: boolean
  /** Of clients of the protocols of 2025; undefined: they cannot subscribe. */
  readonly subscriptions?: ResourceSubscriptions | undefined
  readonly list: () => readonly ToolListing[] | Promise<readonly ToolListing[]>
  /** Resolves with undefined for an unknown tool. */
  readonly call: (name: string, given: unknown) => Promise<ToolAnswer | undefined>
}
