/**
 * Sums of call records by day, and what the cost of a stored record was changed by. SQLite has the sums in a file
 * beside the database, so that they are added up by a thread that keeps no call waiting.
 */
import { serverWords } from '../server-words.ts'

export const sql = `
CREATE TABLE cdr_cost_change (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  cdr_id INTEGER NOT NULL,
  cost_micros INTEGER NOT NULL,
  currency TEXT
) STRICT;
CREATE INDEX cdr_cost_change_record ON cdr_cost_change (cdr_id);
`

/** In SQLite's words. */
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

export const forServer = serverWords(sumTables)
