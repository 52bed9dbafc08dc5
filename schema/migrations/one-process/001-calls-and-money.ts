/** Tenants, customers and money; dispatcher, carriers and routes; calls; credentials. */
export const sql = `
CREATE TABLE setting (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;

CREATE TABLE tenant (
  id INTEGER PRIMARY KEY,
  slug TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL,
  is_active INTEGER NOT NULL DEFAULT 1 CHECK (is_active IN (0, 1)),
  created_at INTEGER NOT NULL
) STRICT;
CREATE TABLE tenant_domain (
  domain TEXT PRIMARY KEY CHECK (domain = lower(domain)),
  tenant_id INTEGER NOT NULL REFERENCES tenant (id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
CREATE INDEX tenant_domain_tenant ON tenant_domain (tenant_id);

CREATE TABLE rate_plan (
  id INTEGER PRIMARY KEY,
  tenant_id INTEGER REFERENCES tenant (id),
  name TEXT NOT NULL UNIQUE,
  currency TEXT NOT NULL DEFAULT 'USD' CHECK (length(currency) = 3),
  decimals INTEGER NOT NULL DEFAULT 4 CHECK (decimals BETWEEN 0 AND 6),
  created_at INTEGER NOT NULL
) STRICT;
CREATE TABLE rate (
  id INTEGER PRIMARY KEY,
  rate_plan_id INTEGER NOT NULL REFERENCES rate_plan (id) ON DELETE CASCADE,
  prefix TEXT NOT NULL,
  description TEXT,
  rate_per_minute_micros INTEGER NOT NULL CHECK (rate_per_minute_micros BETWEEN 0 AND 1000000000000),
  connect_fee_micros INTEGER NOT NULL DEFAULT 0 CHECK (connect_fee_micros BETWEEN 0 AND 1000000000000),
  first_increment_seconds INTEGER NOT NULL DEFAULT 1 CHECK (first_increment_seconds BETWEEN 0 AND 86400),
  first_rate_per_minute_micros INTEGER NOT NULL CHECK (first_rate_per_minute_micros BETWEEN 0 AND 1000000000000),
  increment_seconds INTEGER NOT NULL DEFAULT 1 CHECK (increment_seconds BETWEEN 1 AND 86400),
  is_blocked INTEGER NOT NULL DEFAULT 0 CHECK (is_blocked IN (0, 1)),
  effective_from_at INTEGER,
  effective_to_at INTEGER
) STRICT;
CREATE UNIQUE INDEX rate_identity ON rate (rate_plan_id, prefix, ifnull(effective_from_at, -1));

CREATE TABLE customer (
  id INTEGER PRIMARY KEY,
  tenant_id INTEGER REFERENCES tenant (id),
  name TEXT NOT NULL UNIQUE,
  email TEXT UNIQUE,
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
CREATE INDEX customer_tenant ON customer (tenant_id);
CREATE TABLE customer_number (
  number TEXT PRIMARY KEY,
  customer_id INTEGER NOT NULL REFERENCES customer (id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
CREATE INDEX customer_number_customer ON customer_number (customer_id);

CREATE TABLE wallet (
  id INTEGER PRIMARY KEY,
  customer_id INTEGER NOT NULL UNIQUE REFERENCES customer (id),
  currency TEXT NOT NULL CHECK (length(currency) = 3),
  balance_micros INTEGER NOT NULL DEFAULT 0,
  updated_at INTEGER NOT NULL
) STRICT;
CREATE TABLE ledger_entry (
  id INTEGER PRIMARY KEY,
  wallet_id INTEGER NOT NULL REFERENCES wallet (id),
  kind TEXT NOT NULL CHECK (kind IN ('topup', 'debit', 'adjust', 'refund')),
  amount_micros INTEGER NOT NULL,
  balance_after_micros INTEGER NOT NULL,
  ref TEXT NOT NULL,
  actor TEXT NOT NULL,
  note TEXT,
  created_at INTEGER NOT NULL,
  UNIQUE (kind, ref)
) STRICT;
CREATE INDEX ledger_entry_wallet ON ledger_entry (wallet_id, id);
CREATE TRIGGER ledger_entry_no_update BEFORE UPDATE ON ledger_entry
  BEGIN SELECT RAISE(ABORT, 'ledger entries are append-only'); END;
CREATE TRIGGER ledger_entry_no_delete BEFORE DELETE ON ledger_entry
  BEGIN SELECT RAISE(ABORT, 'ledger entries are append-only'); END;

CREATE TABLE dispatcher_set (
  id INTEGER PRIMARY KEY,
  set_id INTEGER NOT NULL UNIQUE CHECK (set_id BETWEEN 1 AND 65535),
  endpoint_name TEXT NOT NULL UNIQUE,
  tenant_id INTEGER REFERENCES tenant (id),
  algorithm INTEGER NOT NULL CHECK (algorithm IN (0, 4, 6, 8, 9)),
  probe_interval_ms INTEGER,
  probe_timeout_ms INTEGER,
  probe_fail_threshold INTEGER,
  probe_recover_threshold INTEGER,
  probe_ok_codes TEXT,
  voicemail_uri TEXT,
  spy_uri TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
CREATE TABLE dispatcher_node (
  id INTEGER PRIMARY KEY,
  dispatcher_set_id INTEGER NOT NULL REFERENCES dispatcher_set (id) ON DELETE CASCADE,
  host TEXT NOT NULL,
  internal_port INTEGER NOT NULL DEFAULT 5060 CHECK (internal_port BETWEEN 1 AND 65535),
  external_port INTEGER NOT NULL DEFAULT 5080 CHECK (external_port BETWEEN 1 AND 65535),
  weight INTEGER NOT NULL DEFAULT 100 CHECK (weight BETWEEN 1 AND 100),
  priority INTEGER NOT NULL DEFAULT 10 CHECK (priority BETWEEN 1 AND 100),
  description TEXT CHECK (length(description) <= 100),
  transport TEXT NOT NULL DEFAULT 'udp' CHECK (transport IN ('udp', 'tcp', 'tls')),
  is_enabled INTEGER NOT NULL DEFAULT 1 CHECK (is_enabled IN (0, 1)),
  max_calls INTEGER NOT NULL DEFAULT 0 CHECK (max_calls >= 0),
  operator_state TEXT NOT NULL DEFAULT 'active' CHECK (operator_state IN ('active', 'inactive')),
  UNIQUE (dispatcher_set_id, host, internal_port, transport)
) STRICT;

CREATE TABLE carrier (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  tenant_id INTEGER REFERENCES tenant (id),
  customer_id INTEGER REFERENCES customer (id),
  is_active INTEGER NOT NULL DEFAULT 1 CHECK (is_active IN (0, 1)),
  direction TEXT NOT NULL DEFAULT 'both' CHECK (direction IN ('in', 'out', 'both')),
  auth_type TEXT NOT NULL DEFAULT 'ip' CHECK (auth_type IN ('ip', 'digest', 'register')),
  auth_username TEXT,
  auth_password TEXT,
  auth_realm TEXT,
  auth_from_user TEXT,
  auth_from_domain TEXT,
  auth_expires_seconds INTEGER,
  caller_id_mode TEXT NOT NULL DEFAULT 'pass' CHECK (caller_id_mode IN ('pass', 'fixed', 'pai')),
  caller_id_value TEXT,
  number_rules TEXT NOT NULL DEFAULT '{"in":[],"out":[]}',
  codecs TEXT,
  media TEXT NOT NULL DEFAULT 'bypass' CHECK (media IN ('bypass', 'anchor')),
  max_calls INTEGER NOT NULL DEFAULT 0 CHECK (max_calls >= 0),
  max_cps INTEGER NOT NULL DEFAULT 0 CHECK (max_cps >= 0),
  inbound_set_id INTEGER,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
CREATE TABLE carrier_gateway (
  id INTEGER PRIMARY KEY,
  carrier_id INTEGER NOT NULL REFERENCES carrier (id) ON DELETE CASCADE,
  host TEXT NOT NULL,
  port INTEGER NOT NULL DEFAULT 5060 CHECK (port BETWEEN 0 AND 65535),
  transport TEXT NOT NULL DEFAULT 'udp' CHECK (transport IN ('udp', 'tcp', 'tls')),
  netmask INTEGER NOT NULL DEFAULT 32 CHECK (netmask BETWEEN 0 AND 128),
  is_inbound INTEGER NOT NULL DEFAULT 1 CHECK (is_inbound IN (0, 1)),
  is_outbound INTEGER NOT NULL DEFAULT 1 CHECK (is_outbound IN (0, 1)),
  priority INTEGER NOT NULL DEFAULT 10,
  weight INTEGER NOT NULL DEFAULT 100 CHECK (weight BETWEEN 1 AND 100)
) STRICT;
CREATE INDEX carrier_gateway_carrier ON carrier_gateway (carrier_id);

CREATE TABLE outbound_route (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  tenant_id INTEGER REFERENCES tenant (id),
  customer_id INTEGER REFERENCES customer (id),
  carrier_id INTEGER REFERENCES carrier (id),
  prefix TEXT NOT NULL,
  priority INTEGER NOT NULL DEFAULT 10,
  weight INTEGER NOT NULL DEFAULT 100 CHECK (weight BETWEEN 1 AND 100),
  mode TEXT NOT NULL DEFAULT 'static' CHECK (mode IN ('static', 'lcr', 'block')),
  strip INTEGER NOT NULL DEFAULT 0 CHECK (strip >= 0),
  prepend TEXT NOT NULL DEFAULT '',
  is_active INTEGER NOT NULL DEFAULT 1 CHECK (is_active IN (0, 1)),
  is_emergency INTEGER NOT NULL DEFAULT 0 CHECK (is_emergency IN (0, 1)),
  created_at INTEGER NOT NULL
) STRICT;
CREATE TABLE inbound_route (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  tenant_id INTEGER REFERENCES tenant (id),
  carrier_id INTEGER REFERENCES carrier (id),
  prefix TEXT,
  domain TEXT,
  target_type TEXT NOT NULL CHECK (target_type IN ('set', 'extension', 'agent')),
  target TEXT NOT NULL,
  priority INTEGER NOT NULL DEFAULT 10,
  is_active INTEGER NOT NULL DEFAULT 1 CHECK (is_active IN (0, 1)),
  created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE extension (
  id INTEGER PRIMARY KEY,
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
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  UNIQUE (domain, extension)
) STRICT;

CREATE TABLE cdr (
  id INTEGER PRIMARY KEY,
  call_uuid TEXT NOT NULL UNIQUE,
  call_id TEXT NOT NULL,
  direction TEXT NOT NULL CHECK (direction IN ('inbound', 'outbound', 'internal')),
  caller_id_number TEXT NOT NULL,
  caller_id_name TEXT,
  destination_number TEXT NOT NULL,
  start_stamp INTEGER NOT NULL,
  answer_stamp INTEGER,
  end_stamp INTEGER NOT NULL,
  post_dial_delay_ms INTEGER,
  duration INTEGER NOT NULL CHECK (duration >= 0),
  billsec INTEGER NOT NULL CHECK (billsec >= 0),
  disposition TEXT NOT NULL CHECK (disposition IN ('ANSWERED', 'NO ANSWER', 'BUSY', 'CANCELED', 'FAILED', 'CONGESTION')),
  sip_code INTEGER NOT NULL,
  hangup_cause TEXT NOT NULL,
  hangup_by TEXT NOT NULL CHECK (hangup_by IN ('caller', 'callee', 'system', 'api')),
  denial_code TEXT,
  set_id INTEGER,
  node TEXT,
  carrier TEXT,
  attempts TEXT NOT NULL,
  tenant_id INTEGER,
  customer_id INTEGER,
  rate_prefix TEXT,
  cost_micros INTEGER NOT NULL DEFAULT 0 CHECK (cost_micros >= 0),
  currency TEXT,
  mos_score REAL,
  jitter_ms REAL,
  packet_loss_pct REAL,
  source_address TEXT NOT NULL,
  is_recovered INTEGER NOT NULL DEFAULT 0 CHECK (is_recovered IN (0, 1)),
  is_unauthorized_by_ocs INTEGER NOT NULL DEFAULT 0 CHECK (is_unauthorized_by_ocs IN (0, 1))
) STRICT;
CREATE INDEX cdr_start ON cdr (start_stamp);
CREATE INDEX cdr_tenant_start ON cdr (tenant_id, start_stamp);
CREATE INDEX cdr_customer_start ON cdr (customer_id, start_stamp);

CREATE TABLE call_journal (
  call_uuid TEXT PRIMARY KEY,
  call TEXT NOT NULL,
  tariff TEXT,
  answered_at INTEGER NOT NULL,
  alive_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE ocs_report (
  call_uuid TEXT NOT NULL,
  billsec INTEGER NOT NULL CHECK (billsec >= 0),
  is_conflict INTEGER NOT NULL CHECK (is_conflict IN (0, 1)),
  cost_micros INTEGER NOT NULL CHECK (cost_micros >= 0),
  balance_after_micros INTEGER,
  currency TEXT,
  body TEXT,
  reported_at INTEGER NOT NULL,
  PRIMARY KEY (call_uuid, billsec)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX ocs_report_accepted ON ocs_report (call_uuid) WHERE is_conflict = 0;
CREATE TABLE cdr_outbox (
  call_uuid TEXT PRIMARY KEY,
  body TEXT NOT NULL,
  attempts INTEGER NOT NULL DEFAULT 0,
  next_attempt_at INTEGER NOT NULL,
  last_error TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX cdr_outbox_due ON cdr_outbox (next_attempt_at);

CREATE TABLE application_key (
  id INTEGER PRIMARY KEY,
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
  tenant_id INTEGER REFERENCES tenant (id),
  domain TEXT,
  allowed_ips TEXT NOT NULL DEFAULT '[]',
  owner_username TEXT,
  request_count INTEGER NOT NULL DEFAULT 0,
  last_used_at INTEGER,
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX application_key_prefix ON application_key (key_prefix);
CREATE UNIQUE INDEX application_key_name ON application_key (ifnull(tenant_id, 0), name);
CREATE TABLE user (
  id INTEGER PRIMARY KEY,
  username TEXT NOT NULL UNIQUE,
  password_hash TEXT NOT NULL,
  role TEXT NOT NULL CHECK (role IN ('admin', 'operator', 'auditor')),
  tenant_id INTEGER REFERENCES tenant (id),
  is_active INTEGER NOT NULL DEFAULT 1 CHECK (is_active IN (0, 1)),
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
`
