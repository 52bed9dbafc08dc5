/** Call records, and what belongs to a call until it is settled. */

export const sql = `
-- instance is the node of Tollgate that had the call, node the one that it was sent to.
-- required_micros, available_micros: of a call refused for money. recording_error: of a call
-- that was to be recorded.
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
  disposition TEXT NOT NULL
    CHECK (disposition IN ('ANSWERED', 'NO ANSWER', 'BUSY', 'CANCELED', 'FAILED', 'CONGESTION')),
  sip_code INTEGER NOT NULL,
  hangup_cause TEXT NOT NULL,
  hangup_by TEXT NOT NULL CHECK (hangup_by IN ('caller', 'callee', 'system', 'api')),
  denial_code TEXT,
  denial_text TEXT,
  required_micros INTEGER,
  available_micros INTEGER,
  set_id INTEGER,
  instance TEXT,
  node TEXT,
  carrier TEXT,
  attempts TEXT NOT NULL,
  tenant_id INTEGER,
  customer_id INTEGER,
  rate_prefix TEXT,
  cost_micros INTEGER NOT NULL DEFAULT 0 CHECK (cost_micros >= 0),
  currency TEXT,
  mos_score REAL,
  mos_source TEXT CHECK (mos_source IN ('measured', 'computed', 'reported')),
  jitter_ms REAL,
  packet_loss_pct REAL,
  media_quality TEXT,
  recording_error TEXT CHECK (recording_error IN (
    'not_relayed', 'relay_failed', 'nothing_captured', 'unknown_codec', 'not_written')),
  source_address TEXT NOT NULL,
  is_recovered INTEGER NOT NULL DEFAULT 0 CHECK (is_recovered IN (0, 1)),
  is_unauthorized_by_ocs INTEGER NOT NULL DEFAULT 0 CHECK (is_unauthorized_by_ocs IN (0, 1))
) STRICT;
CREATE INDEX cdr_customer_start ON cdr (customer_id, start_stamp);
CREATE INDEX cdr_start ON cdr (start_stamp, id, disposition, billsec);
CREATE INDEX cdr_tenant_start ON cdr (tenant_id, start_stamp, id, disposition, billsec);
CREATE INDEX cdr_unknown_source ON cdr (start_stamp) WHERE denial_code = 'unknown_source';
CREATE INDEX cdr_carrier_start ON cdr (start_stamp, carrier, tenant_id, direction, disposition, billsec)
  WHERE carrier IS NOT NULL;

-- What the cost of a stored record was changed by.
CREATE TABLE cdr_cost_change (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  cdr_id INTEGER NOT NULL,
  cost_micros INTEGER NOT NULL,
  currency TEXT
) STRICT;
CREATE INDEX cdr_cost_change_record ON cdr_cost_change (cdr_id);

-- Calls without a record, by minute and reason.
CREATE TABLE refused_calls (
  minute INTEGER NOT NULL,
  reason TEXT NOT NULL CHECK (reason IN ('unknown_source', 'overload')),
  calls INTEGER NOT NULL CHECK (calls > 0),
  PRIMARY KEY (minute, reason)
) STRICT, WITHOUT ROWID;

-- What the files of recordings are. Their names are the uuids.
CREATE TABLE recording (
  call_uuid TEXT PRIMARY KEY,
  tenant_id INTEGER,
  started_at INTEGER NOT NULL,
  duration_ms INTEGER NOT NULL CHECK (duration_ms >= 0),
  bytes INTEGER NOT NULL CHECK (bytes > 0),
  sha256 TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX recording_started ON recording (started_at);

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

-- Records for an external OCS. One process at a time takes a record.
CREATE TABLE cdr_outbox (
  call_uuid TEXT PRIMARY KEY,
  body TEXT NOT NULL,
  attempts INTEGER NOT NULL DEFAULT 0,
  next_attempt_at INTEGER NOT NULL,
  last_error TEXT,
  claimed_by TEXT,
  claimed_until INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX cdr_outbox_due ON cdr_outbox (next_attempt_at);
CREATE INDEX cdr_outbox_claimed ON cdr_outbox (claimed_by) WHERE claimed_by IS NOT NULL;
`

/**
 * Sums of call records by day, in SQLite's words. With SQLite they are a file beside the database,
 * which a thread of its own fills, so that no call waits.
 */
export const sumTables = `
CREATE TABLE call_sum (
  day INTEGER NOT NULL,
  dimension TEXT NOT NULL,
  customer_id INTEGER NOT NULL,
  tenant_id INTEGER NOT NULL,
  member TEXT NOT NULL,
  currency TEXT NOT NULL,
  calls INTEGER NOT NULL,
  answered INTEGER NOT NULL,
  denied INTEGER NOT NULL,
  failed INTEGER NOT NULL,
  billsec INTEGER NOT NULL,
  cost_micros INTEGER NOT NULL,
  pdd_ms INTEGER NOT NULL,
  pdd_calls INTEGER NOT NULL,
  first_at INTEGER NOT NULL,
  last_at INTEGER NOT NULL,
  first_id INTEGER NOT NULL,
  last_id INTEGER NOT NULL,
  dearest TEXT NOT NULL,
  PRIMARY KEY (day, dimension, customer_id, tenant_id, member, currency)
) STRICT, WITHOUT ROWID;

CREATE TABLE call_sum_state (
  id INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
  records_up_to INTEGER NOT NULL,
  last_uuid TEXT NOT NULL,
  changes_up_to INTEGER NOT NULL,
  gaps_after INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE call_sum_gap (
  first_id INTEGER NOT NULL PRIMARY KEY,
  last_id INTEGER NOT NULL,
  noticed_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
`
