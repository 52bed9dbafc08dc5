/** By which instances an alert is seen, and why it has ended. */
export const sql = `
-- The instance that has seen it; null: an earlier version wrote it.
ALTER TABLE alert_event ADD COLUMN instance TEXT;
-- A sentence without a full stop, where more is to be said than that it is over.
ALTER TABLE alert ADD COLUMN ended TEXT;

-- What several instances see is open while one of them sees it.
CREATE TABLE alert_witness (
  alert_id INTEGER NOT NULL REFERENCES alert (id) ON DELETE CASCADE,
  instance TEXT NOT NULL,
  PRIMARY KEY (alert_id, instance)
) STRICT, WITHOUT ROWID;
CREATE INDEX alert_witness_instance ON alert_witness (instance);
`
