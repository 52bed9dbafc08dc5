/** Floors of quality of outbound routes, and how equal routes and gateways share calls. */
export const sql = `
ALTER TABLE outbound_route ADD COLUMN quality TEXT;
ALTER TABLE outbound_route ADD COLUMN distribution TEXT NOT NULL DEFAULT 'weight'
  CHECK (distribution IN ('weight', 'round_robin', 'percent'));
ALTER TABLE carrier ADD COLUMN distribution TEXT NOT NULL DEFAULT 'weight'
  CHECK (distribution IN ('weight', 'round_robin', 'percent'));
`
