/** Telephone numbers and number blocks of tenants. */
export const sql = `
CREATE TABLE tenant_number (
  prefix TEXT PRIMARY KEY CHECK (prefix <> ''),
  tenant_id INTEGER NOT NULL REFERENCES tenant (id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
CREATE INDEX tenant_number_tenant ON tenant_number (tenant_id);
`
