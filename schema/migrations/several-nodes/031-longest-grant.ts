/**
 * How long the longest grant of a node lasts at most: what it has leased is not freed before the calls are over that it
 * paid for.
 */
export const sql = `
ALTER TABLE node ADD COLUMN longest_grant_seconds INTEGER NOT NULL DEFAULT 60;
`
