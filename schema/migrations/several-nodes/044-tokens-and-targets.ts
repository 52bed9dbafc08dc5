/**
 * Earlier versions kept a new token in the encrypted answer to an `Idempotency-Key`: what is left of it opens to nothing.
 * A proposal is of the target to which its names led when it was shown.
 */
export const sql = `
UPDATE idempotent_answer SET sealed = substr(sealed, 1, 28)
WHERE operation LIKE 'POST %/application-keys%';
ALTER TABLE change_proposal ADD COLUMN target TEXT;
`
