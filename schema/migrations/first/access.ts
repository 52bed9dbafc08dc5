/** Users, keys, and what is remembered of their requests. */
import { noteAnyChange } from './instances.ts'

export const sql = `
CREATE TABLE "user" (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  username TEXT NOT NULL,
  password_hash TEXT NOT NULL,
  role TEXT NOT NULL CHECK (role IN ('admin', 'operator', 'auditor')),
  tenant_id INTEGER REFERENCES tenant (id),
  is_active INTEGER NOT NULL DEFAULT 1 CHECK (is_active IN (0, 1)),
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
CREATE INDEX user_tenant ON "user" (tenant_id);
CREATE UNIQUE INDEX user_name ON "user" (username, coalesce(tenant_id, 0));

CREATE TABLE application_key (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  uuid TEXT NOT NULL UNIQUE,
  kind TEXT NOT NULL CHECK (kind IN ('sbc', 'pbx', 'billing')),
  name TEXT NOT NULL,
  description TEXT,
  key_prefix TEXT NOT NULL,
  key_hash BLOB NOT NULL UNIQUE CHECK (length(key_hash) = 32),
  scopes TEXT NOT NULL,
  rate_limit_rpm INTEGER NOT NULL DEFAULT 1200 CHECK (rate_limit_rpm BETWEEN 1 AND 100000),
  expires_at INTEGER,
  is_active INTEGER NOT NULL DEFAULT 1 CHECK (is_active IN (0, 1)),
  revoked_at INTEGER,
  suspended_at INTEGER,
  suspended_by TEXT,
  tenant_id INTEGER REFERENCES tenant (id),
  domain TEXT,
  allowed_ips TEXT NOT NULL DEFAULT '[]',
  owner_username TEXT,
  request_count INTEGER NOT NULL DEFAULT 0,
  last_used_at INTEGER,
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX application_key_prefix ON application_key (key_prefix);
CREATE UNIQUE INDEX application_key_name ON application_key (coalesce(tenant_id, 0), name);
CREATE INDEX application_key_tenant ON application_key (tenant_id);

-- Secrets that a key had before it was rotated.
CREATE TABLE application_key_previous (
  id INTEGER PRIMARY KEY,
  application_key_id INTEGER NOT NULL REFERENCES application_key (id) ON DELETE CASCADE,
  key_prefix TEXT NOT NULL,
  key_hash BLOB NOT NULL UNIQUE CHECK (length(key_hash) = 32),
  expires_at INTEGER NOT NULL
) STRICT;
CREATE INDEX application_key_previous_prefix ON application_key_previous (key_prefix);
CREATE INDEX application_key_previous_key ON application_key_previous (application_key_id, id);

CREATE TABLE application_key_day (
  application_key_id INTEGER NOT NULL REFERENCES application_key (id) ON DELETE CASCADE,
  day INTEGER NOT NULL,
  requests INTEGER NOT NULL CHECK (requests >= 0),
  PRIMARY KEY (application_key_id, day)
) STRICT, WITHOUT ROWID;

-- Requests of keys in the last hour.
CREATE TABLE application_key_minute (
  application_key_id INTEGER NOT NULL,
  minute INTEGER NOT NULL,
  requests INTEGER NOT NULL,
  PRIMARY KEY (application_key_id, minute)
) STRICT, WITHOUT ROWID;
CREATE INDEX application_key_minute_age ON application_key_minute (minute);

CREATE TABLE key_address (
  application_key_id INTEGER NOT NULL REFERENCES application_key (id) ON DELETE CASCADE,
  address TEXT NOT NULL,
  first_at INTEGER NOT NULL,
  last_at INTEGER NOT NULL,
  requests INTEGER NOT NULL,
  denied INTEGER NOT NULL,
  PRIMARY KEY (application_key_id, address)
) STRICT, WITHOUT ROWID;

-- What each key does, by hour; key_address: by address.
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

-- Sessions that were ended.
CREATE TABLE jwt_denylist (
  jti TEXT PRIMARY KEY,
  expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX jwt_denylist_expiry ON jwt_denylist (expires_at);

-- Answers to requests with an Idempotency-Key. idempotent_claim: which of several nodes carries
-- one out.
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

CREATE TABLE idempotent_claim (
  actor TEXT NOT NULL,
  operation TEXT NOT NULL,
  key_hash BLOB NOT NULL CHECK (length(key_hash) = 32),
  request_hash BLOB NOT NULL CHECK (length(request_hash) = 32),
  claim BLOB NOT NULL,
  claimed_until INTEGER NOT NULL,
  PRIMARY KEY (actor, operation, key_hash)
) STRICT, WITHOUT ROWID;
`

export const forServer = `
${noteAnyChange('user')}
${noteAnyChange('application_key_previous')}
-- Not what every request of a key writes.
${noteAnyChange(
  'application_key',
  'uuid, kind, name, description, key_prefix, key_hash, scopes, rate_limit_rpm, expires_at, is_active, revoked_at, tenant_id, domain, allowed_ips, owner_username',
)}
CREATE TRIGGER note_suspension AFTER UPDATE OF suspended_at ON application_key
  FOR EACH STATEMENT EXECUTE FUNCTION note_change();
`
