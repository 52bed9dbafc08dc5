/** How a plan rounds its prices. */
export const sql = `
ALTER TABLE rate_plan ADD COLUMN rounding TEXT NOT NULL DEFAULT 'up'
  CHECK (rounding IN ('up', 'half_up', 'down'));
`
