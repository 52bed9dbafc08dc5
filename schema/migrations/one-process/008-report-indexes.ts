/** Covering indexes for the totals of reports, which also give the order of their pages. */
export const sql = `
DROP INDEX cdr_start;
DROP INDEX cdr_tenant_start;
CREATE INDEX cdr_start ON cdr (start_stamp, id, disposition, billsec);
CREATE INDEX cdr_tenant_start ON cdr (tenant_id, start_stamp, id, disposition, billsec);
`
