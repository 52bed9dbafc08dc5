/** An index to count waiting deliveries; removed endpoints are deleted in batches. */
export const sql = `
ALTER TABLE webhook_endpoint ADD COLUMN removed_at INTEGER;
CREATE INDEX webhook_delivery_pending ON webhook_delivery (event_id) WHERE state = 'pending';
`
