/** Wrong passwords of phones, by hour, extension (0: one that does not exist) and source. */
export const sql = `
CREATE TABLE wrong_password (
  hour INTEGER NOT NULL,
  tenant_id INTEGER NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
  extension_id INTEGER NOT NULL,
  source TEXT NOT NULL,
  failures INTEGER NOT NULL,
  first_at INTEGER NOT NULL,
  last_at INTEGER NOT NULL,
  PRIMARY KEY (hour, tenant_id, extension_id, source)
) STRICT, WITHOUT ROWID;
CREATE INDEX wrong_password_tenant ON wrong_password (tenant_id, hour);
`
