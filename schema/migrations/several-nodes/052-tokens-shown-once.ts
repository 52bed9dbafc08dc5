/** Earlier versions kept a new token in the encrypted answer to an `Idempotency-Key`: what is left of it opens to nothing. */
export const sql = `
UPDATE idempotent_answer SET sealed = substr(sealed, 1, 28)
WHERE operation LIKE 'POST %/application-keys%';
`
