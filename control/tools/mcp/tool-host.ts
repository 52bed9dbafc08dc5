/** What an MCP server stands on: the toolbox of this process, or a running process's API. */
import type { ToolListing } from '../tool.ts'
import type { ToolAnswer } from '../toolbox.ts'

export interface ToolHost {
  readonly version: string
  readonly list: () => readonly ToolListing[] | Promise<readonly ToolListing[]>
  /** Undefined: there is no such tool. */
  readonly call: (name: string, given: unknown) => Promise<ToolAnswer | undefined>
}
