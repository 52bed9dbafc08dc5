/** Contacts of registered phones. They end with their extension. */
export const sql = `
CREATE TABLE binding (
  id INTEGER PRIMARY KEY,
  extension_id INTEGER NOT NULL REFERENCES extension (id) ON DELETE CASCADE,
  contact TEXT NOT NULL,
  instance TEXT,
  reg_id INTEGER,
  q INTEGER NOT NULL CHECK (q BETWEEN 0 AND 1000),
  call_id TEXT NOT NULL,
  cseq INTEGER NOT NULL,
  path TEXT NOT NULL,
  user_agent TEXT NOT NULL,
  source_protocol TEXT NOT NULL,
  source_address TEXT NOT NULL,
  source_port INTEGER NOT NULL,
  registered_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  UNIQUE (extension_id, contact)
) STRICT;
CREATE INDEX binding_expiry ON binding (expires_at);
`
