/** Which telephone numbers, or blocks of them, belong to a tenant. */
export const sql = `
CREATE TABLE tenant_number (
  prefix TEXT PRIMARY KEY CHECK (prefix <> ''),
  tenant_id INTEGER NOT NULL REFERENCES tenant (id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
CREATE INDEX tenant_number_tenant ON tenant_number (tenant_id);
`
