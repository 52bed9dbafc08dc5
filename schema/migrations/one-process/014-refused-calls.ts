/**
 * Calls without a record are counted by minute and reason. Samples of those from unknown sources have their
 * own index, because their retention is shorter.
 */
export const sql = `
CREATE TABLE refused_calls (
  minute INTEGER NOT NULL,
  reason TEXT NOT NULL CHECK (reason IN ('unknown_source', 'overload')),
  calls INTEGER NOT NULL CHECK (calls > 0),
  PRIMARY KEY (minute, reason)
) STRICT, WITHOUT ROWID;

CREATE INDEX cdr_unknown_source ON cdr (start_stamp) WHERE denial_code = 'unknown_source';
`
