/**
 * What answers "since when" and "why": changes of state of nodes, gateways and registrations with carriers; what each key
 * does, by address and by hour; and what a call refused for money would have needed.
 */
export const sql = `
CREATE TABLE state_change (
  id INTEGER PRIMARY KEY,
  kind TEXT NOT NULL CHECK (kind IN ('node', 'gateway', 'registration')),
  subject_id INTEGER NOT NULL,
  tenant_id INTEGER,
  name TEXT NOT NULL,
  from_state TEXT NOT NULL,
  to_state TEXT NOT NULL,
  cause TEXT NOT NULL,
  reason TEXT NOT NULL,
  actor TEXT,
  observer TEXT NOT NULL,
  at INTEGER NOT NULL
) STRICT;
CREATE INDEX state_change_subject ON state_change (kind, subject_id, at);
CREATE INDEX state_change_at ON state_change (at);
CREATE INDEX state_change_kind ON state_change (kind, at);
CREATE INDEX state_change_tenant ON state_change (tenant_id, kind, at);

CREATE TABLE key_address (
  application_key_id INTEGER NOT NULL REFERENCES application_key (id) ON DELETE CASCADE,
  address TEXT NOT NULL,
  first_at INTEGER NOT NULL,
  last_at INTEGER NOT NULL,
  requests INTEGER NOT NULL,
  denied INTEGER NOT NULL,
  PRIMARY KEY (application_key_id, address)
) STRICT, WITHOUT ROWID;

CREATE TABLE api_hour (
  hour INTEGER NOT NULL,
  application_key_id INTEGER NOT NULL,
  route TEXT NOT NULL,
  outcome TEXT NOT NULL,
  requests INTEGER NOT NULL,
  first_at INTEGER NOT NULL,
  last_at INTEGER NOT NULL,
  PRIMARY KEY (hour, application_key_id, route, outcome)
) STRICT, WITHOUT ROWID;
CREATE INDEX api_hour_key ON api_hour (application_key_id, hour);

ALTER TABLE cdr ADD COLUMN required_micros INTEGER;
ALTER TABLE cdr ADD COLUMN available_micros INTEGER;
`
