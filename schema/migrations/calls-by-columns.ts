/**
 * Calls are found by the columns of their records (`control/reports/columns`): no call pays for
 * indexes of numbers any more.
 */
export const sql = `
DROP INDEX cdr_caller;
DROP INDEX cdr_called;
DROP INDEX cdr_call_id;
`
