/** Events of payment providers, the payments they credit, and alerts that need attention. */
export const sql = `
CREATE TABLE payment_event (
  event_id TEXT PRIMARY KEY,
  kind TEXT NOT NULL,
  outcome TEXT NOT NULL CHECK (outcome IN ('credited', 'duplicate', 'ignored', 'alert')),
  received_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE payment_reference (
  reference TEXT PRIMARY KEY,
  payment TEXT NOT NULL,
  customer_id INTEGER NOT NULL REFERENCES customer (id),
  amount_micros INTEGER NOT NULL CHECK (amount_micros > 0)
) STRICT, WITHOUT ROWID;
CREATE TABLE billing_alert (
  id INTEGER PRIMARY KEY,
  kind TEXT NOT NULL,
  event_id TEXT NOT NULL,
  event_kind TEXT NOT NULL,
  customer_id INTEGER REFERENCES customer (id),
  reference TEXT,
  amount_micros INTEGER,
  currency TEXT,
  detail TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  resolved_at INTEGER,
  resolved_by TEXT,
  UNIQUE (event_id, kind)
) STRICT;
CREATE INDEX billing_alert_open ON billing_alert (id) WHERE resolved_at IS NULL;
CREATE INDEX billing_alert_reference ON billing_alert (reference);
`
