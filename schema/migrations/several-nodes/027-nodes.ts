/** The processes that serve from a PostgreSQL database. An SQLite database has one, and no row. */
export const sql = `
CREATE TABLE node (
  name TEXT PRIMARY KEY,
  epoch INTEGER NOT NULL,
  install_id TEXT NOT NULL,
  address TEXT NOT NULL,
  sip_uri TEXT NOT NULL,
  version TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('starting', 'serving', 'draining', 'stopped')),
  live_calls INTEGER NOT NULL,
  started_at INTEGER NOT NULL,
  heartbeat_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
`
