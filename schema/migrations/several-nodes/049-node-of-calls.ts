/** The node of Tollgate that had the call; null: an earlier version recorded it. */
export const sql = `
ALTER TABLE cdr ADD COLUMN instance TEXT;
`
