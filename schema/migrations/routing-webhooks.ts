/** Routing webhooks: receivers that are asked about calls, one for each scope. */
import { noteAnyChange } from './first/instances.ts'

export const sql = `
-- A scope is a carrier, a dispatcher set by its number, or the whole tenant (null: the platform).
CREATE TABLE routing_webhook (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  tenant_id INTEGER REFERENCES tenant (id),
  url TEXT NOT NULL,
  description TEXT,
  secret TEXT NOT NULL,
  previous_secret TEXT,
  previous_secret_expires_at INTEGER,
  carrier_id INTEGER REFERENCES carrier (id),
  set_id INTEGER REFERENCES dispatcher_set (set_id),
  timeout_ms INTEGER NOT NULL CHECK (timeout_ms BETWEEN 20 AND 2000),
  fallback TEXT NOT NULL CHECK (fallback IN ('continue', 'refuse')),
  cache_seconds INTEGER NOT NULL CHECK (cache_seconds BETWEEN 0 AND 86400),
  cache_key TEXT NOT NULL,
  is_enabled INTEGER NOT NULL CHECK (is_enabled IN (0, 1)),
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  CHECK (carrier_id IS NULL OR set_id IS NULL)
) STRICT;
CREATE INDEX routing_webhook_owner ON routing_webhook (tenant_id, id);
CREATE UNIQUE INDEX routing_webhook_carrier ON routing_webhook (carrier_id)
  WHERE carrier_id IS NOT NULL;
CREATE UNIQUE INDEX routing_webhook_set ON routing_webhook (set_id) WHERE set_id IS NOT NULL;
CREATE UNIQUE INDEX routing_webhook_tenant ON routing_webhook (coalesce(tenant_id, 0))
  WHERE ((carrier_id IS NULL) AND (set_id IS NULL));
`

export const forServer = noteAnyChange('routing_webhook')
