/**
 * Changes that an operator or an agent made, with what is needed to undo them; keys that are suspended; and the change
 * that an audit entry is about. `claimed_until`: a process is at work on the entry until then.
 */
export const sql = `
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
  state TEXT NOT NULL
    CHECK (state IN ('pending', 'made', 'unconfirmed', 'undone', 'expired', 'superseded')),
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

ALTER TABLE application_key ADD COLUMN suspended_at INTEGER;
ALTER TABLE application_key ADD COLUMN suspended_by TEXT;

ALTER TABLE audit_entry ADD COLUMN change_id TEXT;
ALTER TABLE audit_entry ADD COLUMN reason TEXT;
`

/** Every node hears of a suspension as it hears of a revocation. */
export const forServer = `
CREATE TRIGGER note_suspension AFTER UPDATE OF suspended_at ON application_key
  FOR EACH STATEMENT EXECUTE FUNCTION note_change();
`
