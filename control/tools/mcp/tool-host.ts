/** What an MCP server calls: the toolbox of this process, or the API of a running process. */
import type { ToolListing } from '../tool.ts'
import type { ToolAnswer } from '../tool.ts'

export interface ToolHost {
  readonly version: string
  /** Of the client's requests, where none is negotiated for a connection. */
  readonly protocolVersion?: string | undefined
  /** Whether a client is told when a resource changes to which it has subscribed. */
  readonly notifies?: boolean
  readonly list: () => readonly ToolListing[] | Promise<readonly ToolListing[]>
  /** Resolves with undefined for an unknown tool. */
  readonly call: (name: string, given: unknown) => Promise<ToolAnswer | undefined>
}
