/**
 * How the decks of a plan are read, and what each imported deck has changed, so that it can be
 * undone: parts of a few thousand changes, compressed JSON.
 */
export const sql = `
ALTER TABLE rate_plan ADD COLUMN deck_mapping TEXT;

CREATE TABLE rate_deck (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  rate_plan_id INTEGER NOT NULL REFERENCES rate_plan (id) ON DELETE CASCADE,
  file_name TEXT,
  mode TEXT NOT NULL CHECK (mode IN ('merge', 'replace')),
  lines INTEGER NOT NULL,
  imported INTEGER NOT NULL,
  created INTEGER NOT NULL,
  updated INTEGER NOT NULL,
  removed INTEGER NOT NULL,
  imported_by TEXT NOT NULL,
  imported_at INTEGER NOT NULL,
  undone_by TEXT,
  undone_at INTEGER
) STRICT;
CREATE INDEX rate_deck_plan ON rate_deck (rate_plan_id, id);

CREATE TABLE rate_deck_part (
  rate_deck_id INTEGER NOT NULL REFERENCES rate_deck (id) ON DELETE CASCADE,
  part INTEGER NOT NULL,
  changes BLOB NOT NULL,
  PRIMARY KEY (rate_deck_id, part)
) STRICT;
`
