/** The audit names a key as people do: the name may change later, and the row stays. */
export const sql = `
ALTER TABLE audit_entry ADD COLUMN actor_name TEXT;
ALTER TABLE audit_entry ADD COLUMN actor_key_prefix TEXT;
`
