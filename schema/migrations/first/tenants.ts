/** Tenants, price lists, customers, extensions and where their phones are, and AI agents. */
import { noteEachRow } from './instances.ts'

export const sql = `
CREATE TABLE tenant (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  slug TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL,
  is_active INTEGER NOT NULL DEFAULT 1 CHECK (is_active IN (0, 1)),
  media TEXT CHECK (media IN ('bypass', 'prefer', 'anchor')),
  media_profile TEXT NOT NULL DEFAULT 'auto' CHECK (media_profile IN ('auto', 'rtp', 'srtp', 'webrtc')),
  codecs TEXT,
  dtmf TEXT NOT NULL DEFAULT 'auto' CHECK (dtmf IN ('auto', 'rfc4733', 'info')),
  created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE tenant_domain (
  domain TEXT PRIMARY KEY CHECK (domain = lower(domain)),
  tenant_id INTEGER NOT NULL REFERENCES tenant (id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
CREATE INDEX tenant_domain_tenant ON tenant_domain (tenant_id);

-- Telephone numbers and number blocks of tenants.
CREATE TABLE tenant_number (
  prefix TEXT PRIMARY KEY CHECK (prefix <> ''),
  tenant_id INTEGER NOT NULL REFERENCES tenant (id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
CREATE INDEX tenant_number_tenant ON tenant_number (tenant_id);

CREATE TABLE rate_plan (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  tenant_id INTEGER REFERENCES tenant (id),
  name TEXT NOT NULL,
  currency TEXT NOT NULL DEFAULT 'USD' CHECK (length(currency) = 3),
  decimals INTEGER NOT NULL DEFAULT 4 CHECK (decimals BETWEEN 0 AND 6),
  created_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX rate_plan_tenant ON rate_plan (tenant_id, name);
CREATE UNIQUE INDEX rate_plan_name ON rate_plan (name, coalesce(tenant_id, 0));
CREATE INDEX rate_plan_order ON rate_plan (name);

CREATE TABLE rate (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  rate_plan_id INTEGER NOT NULL REFERENCES rate_plan (id) ON DELETE CASCADE,
  prefix TEXT NOT NULL,
  description TEXT,
  rate_per_minute_micros INTEGER NOT NULL CHECK (rate_per_minute_micros BETWEEN 0 AND 1000000000000),
  connect_fee_micros INTEGER NOT NULL DEFAULT 0 CHECK (connect_fee_micros BETWEEN 0 AND 1000000000000),
  first_increment_seconds INTEGER NOT NULL DEFAULT 1 CHECK (first_increment_seconds BETWEEN 0 AND 86400),
  first_rate_per_minute_micros INTEGER NOT NULL
    CHECK (first_rate_per_minute_micros BETWEEN 0 AND 1000000000000),
  increment_seconds INTEGER NOT NULL DEFAULT 1 CHECK (increment_seconds BETWEEN 1 AND 86400),
  is_blocked INTEGER NOT NULL DEFAULT 0 CHECK (is_blocked IN (0, 1)),
  effective_from_at INTEGER,
  effective_to_at INTEGER
) STRICT;
CREATE UNIQUE INDEX rate_identity ON rate (rate_plan_id, prefix, coalesce(effective_from_at, -1));

CREATE TABLE customer (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  tenant_id INTEGER REFERENCES tenant (id),
  name TEXT NOT NULL,
  email TEXT,
  password_hash TEXT,
  is_active INTEGER NOT NULL DEFAULT 1 CHECK (is_active IN (0, 1)),
  rate_plan_id INTEGER REFERENCES rate_plan (id),
  credit_limit_micros INTEGER NOT NULL DEFAULT 0 CHECK (credit_limit_micros >= 0),
  max_concurrent_calls INTEGER NOT NULL DEFAULT 0 CHECK (max_concurrent_calls >= 0),
  max_cps INTEGER NOT NULL DEFAULT 0 CHECK (max_cps >= 0),
  max_daily_spend_micros INTEGER NOT NULL DEFAULT 0 CHECK (max_daily_spend_micros >= 0),
  max_call_seconds INTEGER NOT NULL DEFAULT 0 CHECK (max_call_seconds >= 0),
  low_balance_micros INTEGER NOT NULL DEFAULT 0 CHECK (low_balance_micros >= 0),
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
CREATE INDEX customer_tenant ON customer (tenant_id, name);
CREATE UNIQUE INDEX customer_name ON customer (name, coalesce(tenant_id, 0));
CREATE UNIQUE INDEX customer_email ON customer (email, coalesce(tenant_id, 0));

CREATE TABLE customer_number (
  number TEXT PRIMARY KEY,
  customer_id INTEGER NOT NULL REFERENCES customer (id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
CREATE INDEX customer_number_customer ON customer_number (customer_id);

CREATE TABLE extension (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  tenant_id INTEGER NOT NULL REFERENCES tenant (id),
  domain TEXT NOT NULL REFERENCES tenant_domain (domain),
  extension TEXT NOT NULL,
  display_name TEXT NOT NULL,
  email TEXT,
  customer_id INTEGER REFERENCES customer (id),
  ha1_md5 TEXT NOT NULL,
  ha1_sha256 TEXT NOT NULL,
  voicemail_enabled INTEGER NOT NULL DEFAULT 1 CHECK (voicemail_enabled IN (0, 1)),
  call_recording TEXT NOT NULL DEFAULT 'always' CHECK (call_recording IN ('always', 'never', 'on_demand')),
  media TEXT CHECK (media IN ('bypass', 'prefer', 'anchor')),
  media_profile TEXT NOT NULL DEFAULT 'auto' CHECK (media_profile IN ('auto', 'rtp', 'srtp', 'webrtc')),
  codecs TEXT,
  dtmf TEXT NOT NULL DEFAULT 'auto' CHECK (dtmf IN ('auto', 'rfc4733', 'info')),
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  UNIQUE (domain, extension)
) STRICT;
CREATE INDEX extension_number ON extension (extension, domain);
CREATE INDEX extension_tenant ON extension (tenant_id, extension, domain);

-- Contacts of registered phones. node has the way to the phone: its connection, or the socket
-- that a NAT lets answer.
CREATE TABLE binding (
  id INTEGER PRIMARY KEY,
  extension_id INTEGER NOT NULL REFERENCES extension (id) ON DELETE CASCADE,
  contact TEXT NOT NULL,
  instance TEXT,
  reg_id INTEGER,
  q INTEGER NOT NULL CHECK (q BETWEEN 0 AND 1000),
  call_id TEXT NOT NULL,
  cseq INTEGER NOT NULL,
  path TEXT NOT NULL,
  user_agent TEXT NOT NULL,
  source_protocol TEXT NOT NULL,
  source_address TEXT NOT NULL,
  source_port INTEGER NOT NULL,
  node TEXT NOT NULL DEFAULT '',
  registered_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  UNIQUE (extension_id, contact)
) STRICT;
CREATE INDEX binding_expiry ON binding (expires_at);

-- Wrong passwords of phones, by hour, extension (0: one that does not exist) and source.
CREATE TABLE wrong_password (
  hour INTEGER NOT NULL,
  tenant_id INTEGER NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
  extension_id INTEGER NOT NULL,
  source TEXT NOT NULL,
  failures INTEGER NOT NULL,
  first_at INTEGER NOT NULL,
  last_at INTEGER NOT NULL,
  PRIMARY KEY (hour, tenant_id, extension_id, source)
) STRICT, WITHOUT ROWID;
CREATE INDEX wrong_password_tenant ON wrong_password (tenant_id, hour);

-- AI agents: extension numbers with a SIP URI.
CREATE TABLE ai_agent (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  tenant_id INTEGER REFERENCES tenant (id),
  name TEXT NOT NULL,
  extension TEXT NOT NULL,
  sip_uri TEXT NOT NULL,
  description TEXT,
  max_calls INTEGER NOT NULL DEFAULT 0 CHECK (max_calls >= 0),
  media TEXT CHECK (media IN ('bypass', 'prefer', 'anchor')),
  media_profile TEXT NOT NULL DEFAULT 'auto' CHECK (media_profile IN ('auto', 'rtp', 'srtp', 'webrtc')),
  codecs TEXT,
  dtmf TEXT NOT NULL DEFAULT 'auto' CHECK (dtmf IN ('auto', 'rfc4733', 'info')),
  strip_headers TEXT,
  is_by_tenant INTEGER NOT NULL DEFAULT 0 CHECK (is_by_tenant IN (0, 1)),
  is_active INTEGER NOT NULL DEFAULT 1 CHECK (is_active IN (0, 1)),
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX ai_agent_extension ON ai_agent (coalesce(tenant_id, 0), extension);
CREATE INDEX ai_agent_tenant ON ai_agent (tenant_id, name);
CREATE UNIQUE INDEX ai_agent_name ON ai_agent (name, coalesce(tenant_id, 0));
`

export const forServer = `
${noteEachRow('tenant', 'id')}
${noteEachRow('tenant_domain', 'tenant_id')}
${noteEachRow('tenant_number', 'tenant_id')}
${noteEachRow('rate_plan', 'id')}
${noteEachRow('customer', 'id')}
${noteEachRow('customer_number', 'customer_id')}
-- Nodes hear the plans and prefixes of changed rates; of more than eight prefixes, the plans.
CREATE FUNCTION note_change_of_rates() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE parts text[];
BEGIN
  IF TG_OP = 'UPDATE' THEN
    parts := ARRAY(SELECT rate_plan_id || '/' || prefix FROM changed
             UNION SELECT rate_plan_id || '/' || prefix FROM added LIMIT 9);
  ELSE
    parts := ARRAY(SELECT DISTINCT rate_plan_id || '/' || prefix FROM changed LIMIT 9);
  END IF;
  IF cardinality(parts) > 8 AND TG_OP = 'UPDATE' THEN
    parts := ARRAY(SELECT rate_plan_id::text FROM changed UNION SELECT rate_plan_id::text FROM added LIMIT 9);
  ELSIF cardinality(parts) > 8 THEN
    parts := ARRAY(SELECT DISTINCT rate_plan_id::text FROM changed LIMIT 9);
  END IF;
  IF cardinality(parts) > 8 THEN parts := ARRAY['']; END IF;
  PERFORM note_change_of('rate', part) FROM unnest(parts) AS part;
  RETURN NULL;
END $$;
CREATE TRIGGER note_insert AFTER INSERT ON rate REFERENCING NEW TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION note_change_of_rates();
CREATE TRIGGER note_update AFTER UPDATE ON rate REFERENCING OLD TABLE AS changed NEW TABLE AS added
  FOR EACH STATEMENT EXECUTE FUNCTION note_change_of_rates();
CREATE TRIGGER note_delete AFTER DELETE ON rate REFERENCING OLD TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION note_change_of_rates();
${noteEachRow('ai_agent', 'id')}
CREATE FUNCTION note_change_of_extensions() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE ids text[];
BEGIN
  ids := ARRAY(SELECT id::text FROM changed LIMIT 9);
  IF cardinality(ids) > 8 THEN ids := ARRAY['']; END IF;
  PERFORM note_change_of('extension', id) FROM unnest(ids) AS id;
  RETURN NULL;
END $$;
CREATE TRIGGER note_insert AFTER INSERT ON extension REFERENCING NEW TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION note_change_of_extensions();
CREATE TRIGGER note_update AFTER UPDATE ON extension REFERENCING NEW TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION note_change_of_extensions();
CREATE TRIGGER note_delete AFTER DELETE ON extension REFERENCING OLD TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION note_change_of_extensions();
`
