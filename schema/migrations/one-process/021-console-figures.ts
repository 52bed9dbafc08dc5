/**
 * What the console shows: calls of a period by carrier out of one index, requests of a key by day, and what a
 * receiver of webhooks has answered.
 */
export const sql = `
CREATE INDEX cdr_carrier_start ON cdr (start_stamp, carrier, tenant_id, direction, disposition, billsec)
  WHERE carrier IS NOT NULL;
CREATE TABLE application_key_day (
  application_key_id INTEGER NOT NULL REFERENCES application_key (id) ON DELETE CASCADE,
  day INTEGER NOT NULL,
  requests INTEGER NOT NULL CHECK (requests >= 0),
  PRIMARY KEY (application_key_id, day)
) STRICT, WITHOUT ROWID;
ALTER TABLE webhook_delivery ADD COLUMN last_answer TEXT;
`
