/** Time zones, periods of the week with prices of their own, and holidays. */
export const sql = `
ALTER TABLE tenant ADD COLUMN time_zone TEXT;
ALTER TABLE rate_plan ADD COLUMN time_zone TEXT;
-- JSON; null: the plan has none.
ALTER TABLE rate_plan ADD COLUMN periods TEXT;
ALTER TABLE rate_plan ADD COLUMN holidays TEXT;
ALTER TABLE rate_plan ADD COLUMN price_change TEXT NOT NULL DEFAULT 'hold'
  CHECK (price_change IN ('hold', 'change'));

-- Null: the price whenever no period with a price holds.
ALTER TABLE rate ADD COLUMN period TEXT;
DROP INDEX rate_identity;
CREATE UNIQUE INDEX rate_identity
  ON rate (rate_plan_id, prefix, coalesce(period, ''), coalesce(effective_from_at, -1));
`
