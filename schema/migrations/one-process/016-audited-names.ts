/** Audit entries store the name of a key: it may change later, and the entry stays. */
export const sql = `
ALTER TABLE audit_entry ADD COLUMN actor_name TEXT;
ALTER TABLE audit_entry ADD COLUMN actor_key_prefix TEXT;
`
