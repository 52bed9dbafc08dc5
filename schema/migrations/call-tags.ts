/** Tags of calls, which the operator's own code sets. Most calls have none. */
export const sql = `
ALTER TABLE cdr ADD COLUMN tags TEXT;
`
