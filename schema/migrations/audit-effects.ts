/** Entries of the audit log say in a sentence what was done where no change does, as with money. */
export const sql = `
ALTER TABLE audit_entry ADD COLUMN effect TEXT;
`
