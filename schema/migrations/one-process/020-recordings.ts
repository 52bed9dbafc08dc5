/** Recordings of calls: what their files are. Their names are the uuids. */
export const sql = `
CREATE TABLE recording (
  call_uuid TEXT PRIMARY KEY,
  tenant_id INTEGER,
  started_at INTEGER NOT NULL,
  duration_ms INTEGER NOT NULL CHECK (duration_ms >= 0),
  bytes INTEGER NOT NULL CHECK (bytes > 0),
  sha256 TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX recording_started ON recording (started_at);
`
