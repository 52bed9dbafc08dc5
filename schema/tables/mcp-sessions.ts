/** Sessions of MCP clients, as `control/agents/mcp` keeps them. */

export interface McpSessionTable {
  /** A UUID: `Mcp-Session-Id`. */
  session_id: string
  /** As in the audit log: no other credential can use it. */
  actor: string
  /** In which the actor acts; null for all. */
  tenant_id: number | null
  /** A UUID: of its newest stream, on any node. */
  reader: string | null
  used_at: number
}

export interface McpSubscriptionTable {
  session_id: string
  uri: string
  /** A digest of what the client has last been told of; empty: of nothing. */
  seen: string
}
