/** Calls are found by their numbers and by their Call-ID, in any number of records. */
export const sql = `
CREATE INDEX cdr_caller ON cdr (caller_id_number, start_stamp, tenant_id);
CREATE INDEX cdr_called ON cdr (destination_number, start_stamp, tenant_id);
CREATE INDEX cdr_call_id ON cdr (call_id);
`
