/** AI agents: extension numbers with a SIP URI. */
export const sql = `
CREATE TABLE ai_agent (
  id INTEGER PRIMARY KEY,
  tenant_id INTEGER REFERENCES tenant (id),
  name TEXT NOT NULL UNIQUE,
  extension TEXT NOT NULL,
  sip_uri TEXT NOT NULL,
  description TEXT,
  max_calls INTEGER NOT NULL DEFAULT 0 CHECK (max_calls >= 0),
  is_active INTEGER NOT NULL DEFAULT 1 CHECK (is_active IN (0, 1)),
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX ai_agent_extension ON ai_agent (ifnull(tenant_id, 0), extension);
`
