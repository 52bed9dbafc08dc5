/** A CDR for an external OCS is taken by one process at a time, and a process that starts anew knows what it had taken. */
export const sql = `
ALTER TABLE cdr_outbox ADD COLUMN claimed_by TEXT;
ALTER TABLE cdr_outbox ADD COLUMN claimed_until INTEGER;
CREATE INDEX cdr_outbox_claimed ON cdr_outbox (claimed_by) WHERE claimed_by IS NOT NULL;
`
