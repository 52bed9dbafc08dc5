/** `coalesce` is the word of both databases: a statement that names the index, or reads in its order, says it as it does. */
export const sql = `
DROP INDEX rate_identity;
CREATE UNIQUE INDEX rate_identity ON rate (rate_plan_id, prefix, coalesce(effective_from_at, -1));
`
