/**
 * Sums of calls are kept by the prefix that they are charged by, too: they are made again out of the records. Beside
 * SQLite they are a file, which has a version of its own.
 */
export const sql = ''

export const forServer = `
DELETE FROM call_sum;
DELETE FROM call_sum_gap;
DELETE FROM call_sum_state;
`
