/** A delivery is taken by one process at a time where several share the database. */
export const sql = `
ALTER TABLE webhook_delivery ADD COLUMN claimed_by TEXT;
ALTER TABLE webhook_delivery ADD COLUMN claimed_until INTEGER;
CREATE INDEX webhook_delivery_claimed ON webhook_delivery (claimed_by) WHERE claimed_by IS NOT NULL;
`
