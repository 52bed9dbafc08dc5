/** How a plan rounds its prices, and what the carrier of a call takes. */
export const sql = `
ALTER TABLE rate_plan ADD COLUMN rounding TEXT NOT NULL DEFAULT 'up'
  CHECK (rounding IN ('up', 'half_up', 'down'));

-- carrier_tenant_id is the owner of the carrier, who may see what it takes; null: the platform.
ALTER TABLE cdr ADD COLUMN carrier_cost_micros INTEGER CHECK (carrier_cost_micros >= 0);
ALTER TABLE cdr ADD COLUMN carrier_prefix TEXT;
ALTER TABLE cdr ADD COLUMN carrier_currency TEXT;
ALTER TABLE cdr ADD COLUMN carrier_tenant_id INTEGER;
`
