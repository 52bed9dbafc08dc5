/** Loss protection of plans, customers and outbound routes, and whether a tenant has set it. */
const columns = (table: string): string => `
ALTER TABLE ${table} ADD COLUMN loss_protection TEXT
  CHECK (loss_protection IN ('never', 'warn', 'refuse', 'strict'));
ALTER TABLE ${table} ADD COLUMN min_margin TEXT;
ALTER TABLE ${table} ADD COLUMN is_loss_by_tenant INTEGER NOT NULL DEFAULT 0
  CHECK (is_loss_by_tenant IN (0, 1));
`

export const sql = ['rate_plan', 'customer', 'outbound_route'].map(columns).join('')
