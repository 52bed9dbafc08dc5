/** Views that users of the console keep by a name: filters, order and columns of a screen. */
export const sql = `
CREATE TABLE saved_view (
  user_id INTEGER NOT NULL REFERENCES "user" (id) ON DELETE CASCADE,
  screen TEXT NOT NULL CHECK (screen IN ('calls')),
  name TEXT NOT NULL,
  query TEXT NOT NULL,
  updated_at INTEGER NOT NULL,
  PRIMARY KEY (user_id, screen, name)
) STRICT, WITHOUT ROWID;
`
