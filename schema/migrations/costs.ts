/** How a plan rounds its prices, what the carrier of a call takes, and sums of margins by day. */
export const sql = `
ALTER TABLE rate_plan ADD COLUMN rounding TEXT NOT NULL DEFAULT 'up'
  CHECK (rounding IN ('up', 'half_up', 'down'));

-- carrier_tenant_id is the owner of the carrier, who may see what it takes; null: the platform.
ALTER TABLE cdr ADD COLUMN carrier_cost_micros INTEGER CHECK (carrier_cost_micros >= 0);
ALTER TABLE cdr ADD COLUMN carrier_prefix TEXT;
ALTER TABLE cdr ADD COLUMN carrier_currency TEXT;
ALTER TABLE cdr ADD COLUMN carrier_tenant_id INTEGER;
`

/** Sums of margins, beside those of calls: in SQLite's words, as they are. */
export const sumTables = `
CREATE TABLE margin_sum (
  day INTEGER NOT NULL,
  dimension TEXT NOT NULL,
  tenant_id INTEGER NOT NULL,
  is_own INTEGER NOT NULL,
  member TEXT NOT NULL,
  currency TEXT NOT NULL,
  carrier_currency TEXT NOT NULL,
  calls INTEGER NOT NULL,
  billsec INTEGER NOT NULL,
  losses INTEGER NOT NULL,
  cost_micros INTEGER NOT NULL,
  carrier_cost_micros INTEGER NOT NULL,
  PRIMARY KEY (day, dimension, tenant_id, is_own, member, currency, carrier_currency)
) STRICT, WITHOUT ROWID;
`
