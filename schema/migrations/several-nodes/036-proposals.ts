/** What agents have proposed and people have decided, and who answers for the links that webhooks send. */
export const sql = `
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
  reason TEXT NOT NULL,
  effect TEXT NOT NULL,
  affected TEXT NOT NULL,
  previous_state TEXT NOT NULL,
  undo TEXT NOT NULL,
  risk TEXT NOT NULL CHECK (risk IN ('low', 'medium', 'high')),
  plan_digest TEXT NOT NULL,
  revision INTEGER NOT NULL DEFAULT 1,
  expires_at INTEGER NOT NULL,
  state TEXT NOT NULL DEFAULT 'open'
    CHECK (state IN ('open', 'approved', 'refused', 'expired', 'failed')),
  decided_at INTEGER,
  decided_by TEXT,
  decided_by_name TEXT,
  decided_via TEXT CHECK (decided_via IN ('api', 'link')),
  note TEXT,
  settled_at INTEGER,
  change_id TEXT,
  failure TEXT
) STRICT;
CREATE UNIQUE INDEX change_entry_proposal ON change_entry (proposal_id)
  WHERE proposal_id IS NOT NULL;
CREATE UNIQUE INDEX change_proposal_open ON change_proposal (actor, arguments_digest)
  WHERE state = 'open';
CREATE INDEX change_proposal_tenant ON change_proposal (tenant_id, id);
CREATE INDEX change_proposal_expires ON change_proposal (expires_at) WHERE state = 'open';
CREATE INDEX change_proposal_unsettled ON change_proposal (decided_at) WHERE settled_at IS NULL;
CREATE INDEX change_proposal_settled ON change_proposal (settled_at) WHERE settled_at IS NOT NULL;

ALTER TABLE webhook_endpoint ADD COLUMN approver_id INTEGER REFERENCES user (id) ON DELETE SET NULL;
`
