/** Whether a tenant has written a destination: then it may not lead to the networks of the platform, whatever its name means later. */
export const sql = `
ALTER TABLE ai_agent ADD COLUMN is_by_tenant INTEGER NOT NULL DEFAULT 0 CHECK (is_by_tenant IN (0, 1));
ALTER TABLE dispatcher_set ADD COLUMN is_by_tenant INTEGER NOT NULL DEFAULT 0 CHECK (is_by_tenant IN (0, 1));
ALTER TABLE dispatcher_node ADD COLUMN is_by_tenant INTEGER NOT NULL DEFAULT 0 CHECK (is_by_tenant IN (0, 1));
ALTER TABLE carrier_gateway ADD COLUMN is_by_tenant INTEGER NOT NULL DEFAULT 0 CHECK (is_by_tenant IN (0, 1));
`
