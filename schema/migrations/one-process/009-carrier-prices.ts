/** Prices of carriers, compared by least-cost routes. */
export const sql = `
ALTER TABLE carrier ADD COLUMN rate_plan_id INTEGER REFERENCES rate_plan (id);
CREATE INDEX carrier_rate_plan ON carrier (rate_plan_id);
`
