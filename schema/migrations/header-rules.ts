/** Header and URI rules of carriers, and by which number a plan prices calls to ported numbers. */
export const sql = `
ALTER TABLE carrier ADD COLUMN header_rules TEXT NOT NULL DEFAULT '[]';
ALTER TABLE rate_plan ADD COLUMN priced_by TEXT NOT NULL DEFAULT 'number'
  CHECK (priced_by IN ('number', 'rn'));
`
