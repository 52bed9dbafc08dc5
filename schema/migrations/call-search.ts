/**
 * Calls are found by their numbers and by their Call-ID, in any number of records. What is longer
 * is in no index: PostgreSQL would refuse the record.
 */
export const sql = `
CREATE INDEX cdr_caller ON cdr (caller_id_number, start_stamp, tenant_id)
  WHERE length(caller_id_number) <= 100;
CREATE INDEX cdr_called ON cdr (destination_number, start_stamp, tenant_id)
  WHERE length(destination_number) <= 100;
CREATE INDEX cdr_call_id ON cdr (call_id) WHERE length(call_id) <= 255;
`
