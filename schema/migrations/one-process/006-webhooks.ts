/** Accounting webhooks: endpoints, events and deliveries. */
export const sql = `
CREATE TABLE webhook_endpoint (
  id INTEGER PRIMARY KEY,
  tenant_id INTEGER REFERENCES tenant (id),
  url TEXT NOT NULL,
  description TEXT,
  events TEXT NOT NULL,
  is_active INTEGER NOT NULL DEFAULT 1 CHECK (is_active IN (0, 1)),
  disabled_reason TEXT CHECK (disabled_reason IN ('gone', 'backlog')),
  secret TEXT NOT NULL,
  previous_secret TEXT,
  previous_secret_expires_at INTEGER,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
CREATE INDEX webhook_endpoint_tenant ON webhook_endpoint (tenant_id);

CREATE TABLE webhook_event (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  message_id TEXT NOT NULL,
  type TEXT NOT NULL,
  body TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;
CREATE TABLE webhook_delivery (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  endpoint_id INTEGER NOT NULL REFERENCES webhook_endpoint (id) ON DELETE CASCADE,
  event_id INTEGER NOT NULL REFERENCES webhook_event (id) ON DELETE CASCADE,
  state TEXT NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'delivered', 'failed')),
  attempts INTEGER NOT NULL DEFAULT 0,
  next_attempt_at INTEGER NOT NULL,
  last_attempt_at INTEGER,
  last_status INTEGER,
  last_error TEXT
) STRICT;
CREATE INDEX webhook_delivery_due ON webhook_delivery (endpoint_id, next_attempt_at)
  WHERE state = 'pending';
CREATE INDEX webhook_delivery_endpoint ON webhook_delivery (endpoint_id, id);
CREATE INDEX webhook_delivery_event ON webhook_delivery (event_id);
`
