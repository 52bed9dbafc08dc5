/** Accounting webhooks: endpoints, events and deliveries. */
import { noteAnyChange } from './nodes.ts'

export const sql = `
-- approver_id answers for the links that are sent. A removed endpoint is deleted in batches.
CREATE TABLE webhook_endpoint (
  id INTEGER PRIMARY KEY,
  tenant_id INTEGER REFERENCES tenant (id),
  url TEXT NOT NULL,
  description TEXT,
  approver_id INTEGER REFERENCES "user" (id) ON DELETE SET NULL,
  events TEXT NOT NULL,
  is_active INTEGER NOT NULL DEFAULT 1 CHECK (is_active IN (0, 1)),
  disabled_reason TEXT CHECK (disabled_reason IN ('gone', 'backlog')),
  secret TEXT NOT NULL,
  previous_secret TEXT,
  previous_secret_expires_at INTEGER,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  removed_at INTEGER
) STRICT;
CREATE INDEX webhook_endpoint_tenant ON webhook_endpoint (tenant_id);

CREATE TABLE webhook_event (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  message_id TEXT NOT NULL,
  type TEXT NOT NULL,
  body TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;

-- One process at a time takes a delivery.
CREATE TABLE webhook_delivery (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  endpoint_id INTEGER NOT NULL REFERENCES webhook_endpoint (id) ON DELETE CASCADE,
  event_id INTEGER NOT NULL REFERENCES webhook_event (id) ON DELETE CASCADE,
  state TEXT NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'delivered', 'failed')),
  attempts INTEGER NOT NULL DEFAULT 0,
  next_attempt_at INTEGER NOT NULL,
  last_attempt_at INTEGER,
  last_status INTEGER,
  last_answer TEXT,
  last_error TEXT,
  claimed_by TEXT,
  claimed_until INTEGER
) STRICT;
CREATE INDEX webhook_delivery_due ON webhook_delivery (endpoint_id, next_attempt_at) WHERE state = 'pending';
CREATE INDEX webhook_delivery_endpoint ON webhook_delivery (endpoint_id, id);
CREATE INDEX webhook_delivery_event ON webhook_delivery (event_id);
CREATE INDEX webhook_delivery_pending ON webhook_delivery (event_id) WHERE state = 'pending';
CREATE INDEX webhook_delivery_claimed ON webhook_delivery (claimed_by) WHERE claimed_by IS NOT NULL;
`

export const forServer = `
${noteAnyChange('webhook_endpoint')}
`
