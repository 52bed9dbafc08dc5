/** What waits for receivers is counted by its own index; a removed endpoint goes away bit by bit. */
export const sql = `
ALTER TABLE webhook_endpoint ADD COLUMN removed_at INTEGER;
CREATE INDEX webhook_delivery_pending ON webhook_delivery (event_id) WHERE state = 'pending';
`
