/**
 * Sessions of MCP clients of the protocols of 2025, and what each has subscribed to: any node answers a request of a
 * session, and each keeps those of the time before it was started again. `reader` is the newest stream of a session;
 * `seen` says what its client has last been told of a resource.
 */
export const sql = `
CREATE TABLE mcp_session (
  session_id TEXT PRIMARY KEY,
  actor TEXT NOT NULL,
  tenant_id INTEGER REFERENCES tenant (id) ON DELETE CASCADE,
  reader TEXT,
  used_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX mcp_session_actor ON mcp_session (actor, used_at);
CREATE INDEX mcp_session_tenant ON mcp_session (tenant_id, used_at);
CREATE INDEX mcp_session_used ON mcp_session (used_at);

CREATE TABLE mcp_subscription (
  session_id TEXT NOT NULL REFERENCES mcp_session (session_id) ON DELETE CASCADE,
  uri TEXT NOT NULL,
  seen TEXT NOT NULL,
  PRIMARY KEY (session_id, uri)
) STRICT, WITHOUT ROWID;
`
