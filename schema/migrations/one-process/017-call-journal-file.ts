/**
 * Live calls are in a file beside the database (D130), which names the database it belongs to. The rows that
 * an earlier version left are read once more.
 */
export const sql = `
INSERT INTO setting (name, value) VALUES ('database_id', lower(hex(randomblob(16))));
`
