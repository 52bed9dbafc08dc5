/** How long a node grants without the server is its setting: for so long another disk does not get its name. */
export const sql = `
ALTER TABLE node ADD COLUMN away_ms INTEGER NOT NULL DEFAULT 10000;
`
