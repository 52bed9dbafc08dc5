/**
 * Changes, with who made them and why; sessions of agents; accounting webhooks: endpoints, events
 * and deliveries.
 */
import { noteAnyChange } from './instances.ts'

export const sql = `
-- actor_name and actor_key_prefix are those of the time: a key may be renamed, the entry stays.
CREATE TABLE audit_entry (
  id INTEGER PRIMARY KEY,
  at INTEGER NOT NULL,
  actor TEXT NOT NULL,
  actor_name TEXT,
  actor_key_prefix TEXT,
  tenant_id INTEGER,
  address TEXT NOT NULL,
  action TEXT NOT NULL,
  target TEXT NOT NULL,
  outcome TEXT NOT NULL CHECK (outcome IN ('success', 'refused', 'failed')),
  status INTEGER NOT NULL,
  code TEXT,
  before_digest TEXT,
  after_digest TEXT,
  correlation_id TEXT NOT NULL,
  change_id TEXT,
  reason TEXT
) STRICT;
CREATE INDEX audit_entry_at ON audit_entry (at);
CREATE INDEX audit_entry_tenant_at ON audit_entry (tenant_id, at);
CREATE INDEX audit_entry_actor_at ON audit_entry (actor, at);
CREATE TRIGGER audit_entry_no_update BEFORE UPDATE ON audit_entry
  BEGIN SELECT RAISE(ABORT, 'audit entries are append-only'); END;
-- Entries past their retention may go.
CREATE TRIGGER audit_entry_no_delete BEFORE DELETE ON audit_entry
  WHEN OLD.at >= coalesce(
    (SELECT CAST(value AS INTEGER) FROM setting WHERE name = 'audit_kept_since'), 0)
  BEGIN SELECT RAISE(ABORT, 'audit entries are append-only'); END;

-- Changes that an operator or an agent made, with what is needed to undo them. claimed_until: a
-- process is at work on the entry until then.
CREATE TABLE change_entry (
  id INTEGER PRIMARY KEY,
  change_id TEXT NOT NULL UNIQUE,
  at INTEGER NOT NULL,
  actor TEXT NOT NULL,
  actor_name TEXT,
  tenant_id INTEGER,
  tool TEXT NOT NULL,
  scopes TEXT NOT NULL,
  target_kind TEXT NOT NULL,
  target_id TEXT NOT NULL,
  reason TEXT,
  effect TEXT NOT NULL,
  state_before TEXT,
  state_after TEXT,
  undo TEXT NOT NULL CHECK (undo IN ('restores', 'none')),
  expires_at INTEGER,
  state TEXT NOT NULL CHECK (state IN ('pending', 'made', 'unconfirmed', 'undone', 'expired', 'superseded')),
  undone_at INTEGER,
  undone_by TEXT,
  undo_reason TEXT,
  claimed_until INTEGER,
  proposal_id TEXT
) STRICT;
CREATE INDEX change_entry_at ON change_entry (at);
CREATE INDEX change_entry_tenant_at ON change_entry (tenant_id, at);
CREATE INDEX change_entry_target ON change_entry (target_kind, target_id, id);
CREATE INDEX change_entry_due ON change_entry (expires_at) WHERE state = 'made';
CREATE INDEX change_entry_pending ON change_entry (claimed_until) WHERE state = 'pending';
CREATE UNIQUE INDEX change_entry_proposal ON change_entry (proposal_id) WHERE proposal_id IS NOT NULL;

-- What agents have proposed and people have decided. target is that to which its names led when
-- it was shown.
CREATE TABLE change_proposal (
  id INTEGER PRIMARY KEY,
  uuid TEXT NOT NULL UNIQUE,
  at INTEGER NOT NULL,
  tenant_id INTEGER REFERENCES tenant (id) ON DELETE CASCADE,
  domain TEXT,
  actor TEXT NOT NULL,
  actor_name TEXT,
  tool TEXT NOT NULL,
  arguments TEXT NOT NULL,
  arguments_digest TEXT NOT NULL,
  target TEXT,
  reason TEXT NOT NULL,
  effect TEXT NOT NULL,
  affected TEXT NOT NULL,
  previous_state TEXT NOT NULL,
  undo TEXT NOT NULL,
  risk TEXT NOT NULL CHECK (risk IN ('low', 'medium', 'high')),
  plan_digest TEXT NOT NULL,
  revision INTEGER NOT NULL DEFAULT 1,
  expires_at INTEGER NOT NULL,
  state TEXT NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'approved', 'refused', 'expired', 'failed')),
  decided_at INTEGER,
  decided_by TEXT,
  decided_by_name TEXT,
  decided_via TEXT CHECK (decided_via IN ('api', 'link')),
  note TEXT,
  settled_at INTEGER,
  change_id TEXT,
  failure TEXT
) STRICT;
CREATE UNIQUE INDEX change_proposal_open ON change_proposal (actor, arguments_digest) WHERE state = 'open';
CREATE INDEX change_proposal_tenant ON change_proposal (tenant_id, id);
CREATE INDEX change_proposal_expires ON change_proposal (expires_at) WHERE state = 'open';
CREATE INDEX change_proposal_unsettled ON change_proposal (decided_at) WHERE settled_at IS NULL;
CREATE INDEX change_proposal_settled ON change_proposal (settled_at) WHERE settled_at IS NOT NULL;

-- Changes of state of nodes, gateways and registrations with carriers.
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

-- Sessions of MCP clients of the protocols of 2025. Any node answers a request of a session.
-- reader is the newest stream of a session.
CREATE TABLE mcp_session (
  session_id TEXT PRIMARY KEY,
  actor TEXT NOT NULL,
  tenant_id INTEGER REFERENCES tenant (id) ON DELETE CASCADE,
  reader TEXT,
  used_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX mcp_session_actor ON mcp_session (actor, used_at);
CREATE INDEX mcp_session_tenant ON mcp_session (tenant_id, used_at);
CREATE INDEX mcp_session_used ON mcp_session (used_at);

-- seen says what the client was last told of a resource.
CREATE TABLE mcp_subscription (
  session_id TEXT NOT NULL REFERENCES mcp_session (session_id) ON DELETE CASCADE,
  uri TEXT NOT NULL,
  seen TEXT NOT NULL,
  PRIMARY KEY (session_id, uri)
) STRICT, WITHOUT ROWID;

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
