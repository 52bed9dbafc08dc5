/** Findings, their history, marks of people; what webhooks are told of carriers and phones. */
export const sql = `
-- identity: kind, subject and prefix. details: what is shown of it, as JSON. missed_since: since
-- when searches do not find it any more; null: the last one did.
CREATE TABLE finding (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  tenant_id INTEGER REFERENCES tenant (id) ON DELETE CASCADE,
  identity TEXT NOT NULL,
  kind TEXT NOT NULL,
  severity TEXT NOT NULL CHECK (severity IN ('critical', 'high', 'medium', 'low')),
  subject TEXT NOT NULL,
  details TEXT NOT NULL,
  first_at INTEGER NOT NULL,
  last_at INTEGER NOT NULL,
  handled_change_id TEXT,
  opened_at INTEGER NOT NULL,
  missed_since INTEGER,
  closed_at INTEGER
) STRICT;
CREATE UNIQUE INDEX finding_open ON finding (coalesce(tenant_id, 0), identity)
  WHERE closed_at IS NULL;
CREATE INDEX finding_identity ON finding (identity, closed_at);
CREATE INDEX finding_tenant ON finding (tenant_id, id);
CREATE INDEX finding_closed ON finding (closed_at) WHERE closed_at IS NOT NULL;

-- What the platform, and apart from it the tenant, have said of a finding.
CREATE TABLE finding_mark (
  finding_id INTEGER NOT NULL REFERENCES finding (id) ON DELETE CASCADE,
  side TEXT NOT NULL CHECK (side IN ('platform', 'tenant')),
  state TEXT NOT NULL CHECK (state IN ('acknowledged', 'snoozed')),
  until INTEGER,
  note TEXT,
  actor TEXT NOT NULL,
  actor_name TEXT,
  at INTEGER NOT NULL,
  PRIMARY KEY (finding_id, side)
) STRICT, WITHOUT ROWID;

-- The state of each carrier, and of our registration there, that webhooks were told last, by
-- whichever instance saw it first.
CREATE TABLE carrier_service (
  carrier_id INTEGER NOT NULL REFERENCES carrier (id) ON DELETE CASCADE,
  service TEXT NOT NULL CHECK (service IN ('calls', 'registration')),
  state TEXT NOT NULL CHECK (state IN ('up', 'down')),
  since INTEGER NOT NULL,
  PRIMARY KEY (carrier_id, service)
) STRICT, WITHOUT ROWID;

-- Phones that are lost, until webhooks are told of many together.
CREATE TABLE lost_registration (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  tenant_id INTEGER NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
  extension_id INTEGER NOT NULL REFERENCES extension (id) ON DELETE CASCADE,
  domain TEXT NOT NULL,
  extension TEXT NOT NULL,
  contact TEXT NOT NULL,
  reason TEXT NOT NULL CHECK (reason IN ('expired', 'connection_closed')),
  at INTEGER NOT NULL
) STRICT;
CREATE INDEX lost_registration_at ON lost_registration (at);
`
