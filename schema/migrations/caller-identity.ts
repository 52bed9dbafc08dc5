/**
 * Which number a call shows: own numbers of extensions and customers, and the rules of extensions,
 * customers, dispatcher sets and carriers.
 */

/** The rules are one JSON object (`schema/contracts/caller-identity.ts`); null: there are none. */
const rules = (table: string): string => `ALTER TABLE ${table} ADD COLUMN caller_identity TEXT;
`

/** Neither database changes a CHECK in place, and both can put a column in the place of another. */
export const sql = `
ALTER TABLE extension ADD COLUMN caller_number TEXT;
ALTER TABLE customer ADD COLUMN default_number TEXT;
${['extension', 'customer', 'dispatcher_set', 'carrier'].map(rules).join('')}
ALTER TABLE carrier ADD COLUMN caller_mode TEXT NOT NULL DEFAULT 'pass'
  CHECK (caller_mode IN ('pass', 'fixed', 'pai', 'policy'));
UPDATE carrier SET caller_mode = caller_id_mode;
ALTER TABLE carrier DROP COLUMN caller_id_mode;
ALTER TABLE carrier RENAME COLUMN caller_mode TO caller_id_mode;
`
