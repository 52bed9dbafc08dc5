/** Dispatcher sets, carriers and routes. */
import { noteEachRow } from './instances.ts'

export const sql = `
-- is_by_tenant, here and below: a tenant has written the destination, so it may not lead to the
-- networks of the platform.
CREATE TABLE dispatcher_set (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  set_id INTEGER NOT NULL UNIQUE CHECK (set_id BETWEEN 1 AND 65535),
  endpoint_name TEXT NOT NULL,
  tenant_id INTEGER REFERENCES tenant (id),
  algorithm INTEGER NOT NULL CHECK (algorithm IN (0, 4, 6, 8, 9)),
  probe_interval_ms INTEGER,
  probe_timeout_ms INTEGER,
  probe_fail_threshold INTEGER,
  probe_recover_threshold INTEGER,
  probe_ok_codes TEXT,
  voicemail_uri TEXT,
  spy_uri TEXT,
  media TEXT CHECK (media IN ('bypass', 'prefer', 'anchor')),
  media_profile TEXT NOT NULL DEFAULT 'auto' CHECK (media_profile IN ('auto', 'rtp', 'srtp', 'webrtc')),
  codecs TEXT,
  dtmf TEXT NOT NULL DEFAULT 'auto' CHECK (dtmf IN ('auto', 'rfc4733', 'info')),
  is_by_tenant INTEGER NOT NULL DEFAULT 0 CHECK (is_by_tenant IN (0, 1)),
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
CREATE INDEX dispatcher_set_tenant ON dispatcher_set (tenant_id, set_id);
CREATE UNIQUE INDEX dispatcher_set_name ON dispatcher_set (endpoint_name, coalesce(tenant_id, 0));

CREATE TABLE dispatcher_node (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
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
  is_by_tenant INTEGER NOT NULL DEFAULT 0 CHECK (is_by_tenant IN (0, 1)),
  UNIQUE (dispatcher_set_id, host, internal_port, transport)
) STRICT;

-- payer: whether the number in From determines the payer of a carrier without a customer.
-- rate_plan_id: its prices, compared by least-cost routes.
CREATE TABLE carrier (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL,
  tenant_id INTEGER REFERENCES tenant (id),
  customer_id INTEGER REFERENCES customer (id),
  payer TEXT NOT NULL DEFAULT 'customer' CHECK (payer IN ('customer', 'from_number')),
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
  media TEXT NOT NULL DEFAULT 'bypass' CHECK (media IN ('bypass', 'prefer', 'anchor')),
  media_profile TEXT NOT NULL DEFAULT 'auto' CHECK (media_profile IN ('auto', 'rtp', 'srtp', 'webrtc')),
  dtmf TEXT NOT NULL DEFAULT 'auto' CHECK (dtmf IN ('auto', 'rfc4733', 'info')),
  strip_headers TEXT,
  max_calls INTEGER NOT NULL DEFAULT 0 CHECK (max_calls >= 0),
  max_cps INTEGER NOT NULL DEFAULT 0 CHECK (max_cps >= 0),
  inbound_set_id INTEGER,
  rate_plan_id INTEGER REFERENCES rate_plan (id),
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
CREATE INDEX carrier_tenant ON carrier (tenant_id, name);
CREATE INDEX carrier_rate_plan ON carrier (rate_plan_id);
CREATE UNIQUE INDEX carrier_name ON carrier (name, coalesce(tenant_id, 0));

CREATE TABLE carrier_gateway (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  carrier_id INTEGER NOT NULL REFERENCES carrier (id) ON DELETE CASCADE,
  host TEXT NOT NULL,
  port INTEGER NOT NULL DEFAULT 5060 CHECK (port BETWEEN 0 AND 65535),
  transport TEXT NOT NULL DEFAULT 'udp' CHECK (transport IN ('udp', 'tcp', 'tls')),
  netmask INTEGER NOT NULL DEFAULT 32 CHECK (netmask BETWEEN 0 AND 128),
  is_inbound INTEGER NOT NULL DEFAULT 1 CHECK (is_inbound IN (0, 1)),
  is_outbound INTEGER NOT NULL DEFAULT 1 CHECK (is_outbound IN (0, 1)),
  priority INTEGER NOT NULL DEFAULT 10,
  weight INTEGER NOT NULL DEFAULT 100 CHECK (weight BETWEEN 1 AND 100),
  is_by_tenant INTEGER NOT NULL DEFAULT 0 CHECK (is_by_tenant IN (0, 1))
) STRICT;
CREATE INDEX carrier_gateway_carrier ON carrier_gateway (carrier_id);

CREATE TABLE outbound_route (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL,
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
CREATE INDEX outbound_route_tenant ON outbound_route (tenant_id, name);
CREATE UNIQUE INDEX outbound_route_name ON outbound_route (name, coalesce(tenant_id, 0));

CREATE TABLE inbound_route (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL,
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
CREATE INDEX inbound_route_tenant ON inbound_route (tenant_id, name);
CREATE UNIQUE INDEX inbound_route_name ON inbound_route (name, coalesce(tenant_id, 0));
`

export const forServer = `
${noteEachRow('dispatcher_set', 'id')}
${noteEachRow('dispatcher_node', 'dispatcher_set_id')}
${noteEachRow('carrier', 'id')}
${noteEachRow('carrier_gateway', 'carrier_id')}
${noteEachRow('outbound_route', 'id')}
${noteEachRow('inbound_route', 'id')}
`
