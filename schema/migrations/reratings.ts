/**
 * Re-rating: jobs that price past calls anew, what each of them has changed, and changes of stored
 * records by which the sums follow.
 */
export const sql = `
-- records is 1 or -1 where a record comes with, or goes from, what the other columns say of it,
-- and its amounts have that sign; 0: the cost alone was changed.
ALTER TABLE cdr_cost_change ADD COLUMN records INTEGER NOT NULL DEFAULT 0
  CHECK (records IN (-1, 0, 1));
ALTER TABLE cdr_cost_change ADD COLUMN rate_prefix TEXT;
ALTER TABLE cdr_cost_change ADD COLUMN carrier_cost_micros INTEGER;
ALTER TABLE cdr_cost_change ADD COLUMN carrier_currency TEXT;
ALTER TABLE cdr_cost_change ADD COLUMN carrier_tenant_id INTEGER;

-- The number by which the carrier charges; null: the called number.
ALTER TABLE cdr ADD COLUMN carrier_number TEXT;

-- The plan and its name stay when it is removed: money was moved. ref is in the references of
-- ledger entries. position_at and position_id are the last record that was looked at; while it is
-- undone, position_id is the part before which nothing is undone yet.
CREATE TABLE rerating (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  ref TEXT NOT NULL UNIQUE,
  tenant_id INTEGER REFERENCES tenant (id) ON DELETE CASCADE,
  kind TEXT NOT NULL CHECK (kind IN ('sold', 'bought')),
  rate_plan_id INTEGER NOT NULL,
  rate_plan TEXT NOT NULL,
  currency TEXT NOT NULL,
  from_at INTEGER NOT NULL,
  before_at INTEGER NOT NULL,
  customer_id INTEGER,
  carrier_id INTEGER,
  prefix TEXT NOT NULL,
  priced_at INTEGER,
  state TEXT NOT NULL
    CHECK (state IN ('rating', 'posting', 'done', 'undoing', 'returning', 'undone')),
  position_at INTEGER NOT NULL,
  position_id INTEGER NOT NULL,
  total INTEGER NOT NULL,
  looked_at INTEGER NOT NULL DEFAULT 0,
  calls INTEGER NOT NULL DEFAULT 0,
  changed INTEGER NOT NULL DEFAULT 0,
  without_rate INTEGER NOT NULL DEFAULT 0,
  unknown_number INTEGER NOT NULL DEFAULT 0,
  other_currency INTEGER NOT NULL DEFAULT 0,
  parts INTEGER NOT NULL DEFAULT 0,
  before_micros INTEGER NOT NULL DEFAULT 0,
  after_micros INTEGER NOT NULL DEFAULT 0,
  restored INTEGER NOT NULL DEFAULT 0,
  kept INTEGER NOT NULL DEFAULT 0,
  started_by TEXT NOT NULL,
  started_at INTEGER NOT NULL,
  ended_at INTEGER,
  undone_by TEXT,
  undone_at INTEGER,
  claimed_by TEXT,
  claimed_until INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX rerating_tenant ON rerating (tenant_id, id);
CREATE INDEX rerating_open ON rerating (state, id);

-- What a page of records was before and after: compressed JSON.
CREATE TABLE rerating_part (
  rerating_id INTEGER NOT NULL REFERENCES rerating (id) ON DELETE CASCADE,
  part INTEGER NOT NULL,
  changes BLOB NOT NULL,
  PRIMARY KEY (rerating_id, part)
) STRICT;

-- 0: calls without a customer. Of an undo, returned_micros is what goes back. What was posted is
-- null until it is known: 0 where the customer has no wallet of this currency.
CREATE TABLE rerating_sum (
  rerating_id INTEGER NOT NULL REFERENCES rerating (id) ON DELETE CASCADE,
  customer_id INTEGER NOT NULL,
  calls INTEGER NOT NULL,
  before_micros INTEGER NOT NULL,
  after_micros INTEGER NOT NULL,
  returned_micros INTEGER NOT NULL DEFAULT 0,
  posted_micros INTEGER,
  is_returned INTEGER NOT NULL DEFAULT 0 CHECK (is_returned IN (0, 1)),
  PRIMARY KEY (rerating_id, customer_id)
) STRICT, WITHOUT ROWID;
`
