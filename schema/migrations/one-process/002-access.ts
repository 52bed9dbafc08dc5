/** Key rotation, ended sessions, repeatable requests, and the audit trail. */
export const sql = `
CREATE TABLE application_key_previous (
  id INTEGER PRIMARY KEY,
  application_key_id INTEGER NOT NULL REFERENCES application_key (id) ON DELETE CASCADE,
  key_prefix TEXT NOT NULL,
  key_hash BLOB NOT NULL UNIQUE CHECK (length(key_hash) = 32),
  expires_at INTEGER NOT NULL
) STRICT;
CREATE INDEX application_key_previous_prefix ON application_key_previous (key_prefix);
CREATE INDEX application_key_previous_key ON application_key_previous (application_key_id, id);

CREATE TABLE jwt_denylist (
  jti TEXT PRIMARY KEY,
  expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX jwt_denylist_expiry ON jwt_denylist (expires_at);

CREATE TABLE idempotent_answer (
  actor TEXT NOT NULL,
  operation TEXT NOT NULL,
  key_hash BLOB NOT NULL CHECK (length(key_hash) = 32),
  request_hash BLOB NOT NULL CHECK (length(request_hash) = 32),
  status INTEGER NOT NULL,
  sealed BLOB NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (actor, operation, key_hash)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotent_answer_age ON idempotent_answer (created_at);

CREATE TABLE audit_entry (
  id INTEGER PRIMARY KEY,
  at INTEGER NOT NULL,
  actor TEXT NOT NULL,
  tenant_id INTEGER,
  address TEXT NOT NULL,
  action TEXT NOT NULL,
  target TEXT NOT NULL,
  outcome TEXT NOT NULL CHECK (outcome IN ('success', 'refused', 'failed')),
  status INTEGER NOT NULL,
  code TEXT,
  before_digest TEXT,
  after_digest TEXT,
  correlation_id TEXT NOT NULL
) STRICT;
CREATE INDEX audit_entry_at ON audit_entry (at);
CREATE INDEX audit_entry_tenant_at ON audit_entry (tenant_id, at);
CREATE INDEX audit_entry_actor_at ON audit_entry (actor, at);
CREATE TRIGGER audit_entry_no_update BEFORE UPDATE ON audit_entry
  BEGIN SELECT RAISE(ABORT, 'audit entries are append-only'); END;
CREATE TRIGGER audit_entry_no_delete BEFORE DELETE ON audit_entry
  BEGIN SELECT RAISE(ABORT, 'audit entries are append-only'); END;
`
