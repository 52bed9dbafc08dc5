/**
 * Facts for a dispute about a call: the price it was rated by, and the number as it was dialled.
 * Call records by columns, for searches (`control/reports/columns`).
 */
export const sql = `
-- JSON of the price that was in force at the answer; null: nobody paid here, or an earlier version
-- recorded the call.
ALTER TABLE cdr ADD COLUMN rated TEXT;
-- The called number as it came; null: the call began here, or an earlier version recorded it.
ALTER TABLE cdr ADD COLUMN number_dialled TEXT;
`

/** In SQLite's words: with SQLite they are in the file of sums. */
export const blockTables = `
CREATE TABLE record_block (
  first_id INTEGER NOT NULL PRIMARY KEY,
  last_id INTEGER NOT NULL,
  last_uuid TEXT NOT NULL,
  first_start INTEGER NOT NULL,
  last_start INTEGER NOT NULL,
  calls INTEGER NOT NULL,
  version INTEGER NOT NULL,
  is_stale INTEGER NOT NULL,
  gaps TEXT NOT NULL,
  built_at INTEGER NOT NULL,
  checked_at INTEGER NOT NULL,
  head TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE record_column (
  first_id INTEGER NOT NULL,
  name TEXT NOT NULL,
  version INTEGER NOT NULL,
  data BLOB NOT NULL,
  PRIMARY KEY (first_id, name)
) STRICT;
`

/** The bytes do not become smaller: the server would only spend time on it. */
export const blocksForServer = `
ALTER TABLE record_column ALTER COLUMN data SET STORAGE EXTERNAL;
`
