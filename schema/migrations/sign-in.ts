/** Second factors, sessions that are seen, and single sign-on of users. */
export const sql = `
-- confirmed_at is null until the first code. last_step: the 30 seconds of the last code.
CREATE TABLE user_second_factor (
  user_id INTEGER NOT NULL REFERENCES "user" (id) ON DELETE CASCADE,
  secret TEXT NOT NULL,
  confirmed_at INTEGER,
  last_step INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (user_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE user_recovery_code (
  user_id INTEGER NOT NULL REFERENCES "user" (id) ON DELETE CASCADE,
  code_hash BLOB NOT NULL CHECK (length(code_hash) = 32),
  PRIMARY KEY (user_id, code_hash)
) STRICT, WITHOUT ROWID;

-- Without a tenant: of the users of the platform.
CREATE TABLE sign_in_policy (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  tenant_id INTEGER REFERENCES tenant (id) ON DELETE CASCADE,
  is_second_factor_required INTEGER NOT NULL CHECK (is_second_factor_required IN (0, 1)),
  updated_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX sign_in_policy_owner ON sign_in_policy (coalesce(tenant_id, 0));

CREATE TABLE identity_provider (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL,
  tenant_id INTEGER REFERENCES tenant (id),
  issuer TEXT NOT NULL,
  client_id TEXT NOT NULL,
  client_secret TEXT,
  scopes TEXT NOT NULL,
  role_claim TEXT NOT NULL,
  username_claim TEXT NOT NULL,
  role_mappings TEXT NOT NULL,
  is_enabled INTEGER NOT NULL CHECK (is_enabled IN (0, 1)),
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX identity_provider_name ON identity_provider (name, coalesce(tenant_id, 0));
CREATE INDEX identity_provider_owner ON identity_provider (tenant_id, name);

-- Who a user is at an issuer. It outlives the provider, which may be made again.
CREATE TABLE user_identity (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  user_id INTEGER NOT NULL REFERENCES "user" (id) ON DELETE CASCADE,
  owner_id INTEGER REFERENCES tenant (id) ON DELETE CASCADE,
  issuer TEXT NOT NULL,
  subject TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX user_identity_subject
  ON user_identity (coalesce(owner_id, 0), issuer, subject);
CREATE INDEX user_identity_user ON user_identity (user_id);
CREATE INDEX user_identity_owner ON user_identity (owner_id);

CREATE TABLE user_session (
  jti TEXT PRIMARY KEY,
  user_id INTEGER NOT NULL REFERENCES "user" (id) ON DELETE CASCADE,
  password_mark TEXT NOT NULL,
  begun_at INTEGER NOT NULL,
  last_seen_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  address TEXT NOT NULL,
  user_agent TEXT,
  identity_provider_id INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX user_session_user ON user_session (user_id, begun_at);
CREATE INDEX user_session_expiry ON user_session (expires_at);
`
